// Checks that end a run with an error that names the node. A check is a run-time symbol that nothing
// mentions: its value is a number that the graph computes, its range what is allowed, its name what the error
// says.
#pragma once

#include <string_view>

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// The run fails unless `value`, one integer, is in [min, max]; `what` names it in the error: "index",
// "elements". Requires a max that is a number, or follows from free dims.
void require_in_range(NodeImport& n, std::string_view what, ValueId value, int64_t min, const Dim& max);

// Indices into a dim of `size`, negative ones counting from its end. Known ones have to be in range;
// OnnxChoices::checked demands it of computed ones, too.
Status check_indices(NodeImport& n, ValueId indices, const Dim& size, std::string_view what = "index");
// Tuples of indices along the last dim, into the dims of `data` from `first` on.
Status check_index_tuples(NodeImport& n, ValueId tuples, const Shape& data, int64_t first);

}  // namespace quernel::onnx_import
