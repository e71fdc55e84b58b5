// What the walk over a model's graph checks: shapes, and a node after its importer has run.
#pragma once

#include <cstdint>
#include <vector>

#include "frontends/shared/error_sink.h"
#include "frontends/shared/imported_node.h"

namespace quernel {

// Whether a tensor of these dims is one that sizes can be computed for: no negative dim, and a product, zeros
// left out, that stays below 2^40 elements. Zeros are left out because sums over the other dims must not
// overflow either.
bool is_sane_shape(const std::vector<int64_t>& dims);

// Refuses values from `first_new_value` on that are too large, or whose dims are too long as text.
Status check_sizes(const Graph& graph, int32_t first_new_value, const Location& place);
// Requires that the reshapes that a node made keep the number of elements, whatever the free dims are.
Status check_reshapes(ImportedNode& n, int32_t first_new_value);
// Returns what a failed importer returned; throws NodeFailed, with a report of them, if free dims are why.
Status why_failed(ImportedNode& n, Status status, ErrorSink& errors);

}  // namespace quernel
