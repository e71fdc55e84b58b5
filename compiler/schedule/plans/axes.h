// The axes of loops: merged and split so that accesses need few quotients and remainders, and compared for
// running in vectors.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/index_map.h"

namespace quernel::schedule {

// Returns the accesses (loads, stores and guards) of a kernel at the given indices over axes of these
// extents.
using AccessProbe = std::function<std::vector<IndexExpr>(const std::vector<std::vector<IndexExpr>>& indices,
                                                         const Shape& extents)>;

// Splits an axis of known extent in two if accesses use quotients and remainders of its position, and if
// fewer of these remain after the split. Inner axes get at least `least` elements. `accesses`: the result of
// `probe` for `indices`. Returns the new extents and rewrites `indices` accordingly; the last call of
// `probe`, if any, was with these.
Shape split_axes(Shape extents, std::vector<std::vector<IndexExpr>>& indices, int64_t least,
                 std::vector<IndexExpr> accesses, const AccessProbe& probe);

// Merges adjacent axes that every access walks as one. Returns the new extents and rewrites `indices` from
// expressions over the old axes to expressions over the new ones. Only axes of equal class, or of extent 1,
// are merged; `merged_classes` receives the classes of the new axes.
Shape merge_axes(Shape extents, const std::vector<int>& classes, std::vector<std::vector<IndexExpr>>& indices,
                 std::vector<int>& merged_classes, const AccessProbe& probe);

// Returns the stride of an access along an axis, or nullopt if the access is not affine in it.
std::optional<Dim> stride_along(const IndexExpr& access, int axis, int axes);
// Returns whether vectors along the axis load or store the access whole: neighbours, or one element for all.
bool is_contiguous(const IndexExpr& access, int axis, int axes);

// Returns the share of full speed at which `accesses` run in vectors of `lanes` along `axis`.
double vector_speed(const std::vector<IndexExpr>& accesses, const Shape& extents, int axis, int lanes);

}  // namespace quernel::schedule
