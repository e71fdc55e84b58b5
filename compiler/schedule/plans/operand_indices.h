// The indices at which a node that is no arithmetic reads its operand, for given indices of its result. Both
// the analysis of accesses (plans/access_walk.h) and lowering follow them.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/index_map.h"
#include "graph/ir.h"
#include "schedule/schedule.h"

namespace quernel::schedule {

// Returns the offset of an element in the storage of `v`, relative to its binding.
IndexExpr element_offset(const Schedule& schedule, ValueId v, const std::vector<IndexExpr>& at,
                         const Shape& bounds);

// `at` are the indices of the result's element, expressions over axes of extents `bounds`.
struct MappedRead {
  std::vector<IndexExpr> indices;
  std::vector<IndexGuard> guards;  // those that do not hold at every point
};
// Requires a node with an index map.
MappedRead mapped_read(const Graph& graph, const Node& node, const std::vector<IndexExpr>& at,
                       const Shape& bounds);

// Padding that mirrors or repeats. `inside(position, dim)` returns the index for a position that may lie
// outside of the operand's dim.
std::vector<IndexExpr> padded_read(const Graph& graph, const Node& node, const std::vector<IndexExpr>& at,
                                   const Shape& bounds,
                                   const std::function<IndexExpr(const IndexExpr&, size_t dim)>& inside);

// take, gather_elements and gather_nd. `element(indices, at, extent)` returns the index that is element `at`
// of the value `indices`, below `extent`.
using GatheredIndex =
    std::function<IndexExpr(ValueId indices, const std::vector<IndexExpr>& at, const Dim& extent)>;
std::vector<IndexExpr> gathered_read(const Graph& graph, const Node& node, const std::vector<IndexExpr>& at,
                                     const GatheredIndex& element);
// Returns the element of a constant table of indices that is an affine function of its position, or repeats
// each of 0, 1, … equally often (nearest-neighbour resizing). Such tables need no memory.
std::optional<IndexExpr> index_of_table(const Graph& graph, ValueId table, const std::vector<IndexExpr>& at,
                                        const Dim& extent, const Shape& bounds);

// A bitcast: the elements whose bits make up one element of the result, low-order parts first; or the one
// element that it is a part of.
std::vector<std::vector<IndexExpr>> bitcast_reads(const Graph& graph, const Node& node,
                                                  const std::vector<IndexExpr>& at, const Shape& bounds);

}  // namespace quernel::schedule
