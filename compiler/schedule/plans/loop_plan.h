// The loops of kernels that walk over elements, as data: their axes, and which of them runs in vectors.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/index_map.h"
#include "graph/ir.h"

namespace quernel::schedule {

// A load that a kernel does at each point: of a stored value, at an element offset over the axes.
struct ElementLoad {
  ValueId value = kNoValue;
  IndexExpr offset;
  bool operator==(const ElementLoad&) const = default;
};

// Adjacent dims that every access walks as one are one axis; dims that operands walk as a mixed-radix number
// are two.
struct LoopPlan {
  Shape extents;             // of the axes, outermost first
  std::vector<int> classes;  // per axis: 1 if it is reduced or scanned, else 0
  std::vector<std::vector<IndexExpr>>
      indices;           // over the axes: [0] of the operand, [1] of a reduction's result
  int vector_axis = -1;  // -1: none
  int lanes = 1;         // of the vectors
  // Workgroups share the vector axis, each so many positions. 0: each has all of it.
  int64_t part = 0;
};

// A map, or the copy of one operand of a cat.
struct MapPlan {
  LoopPlan loops;          // indices[0]: of the element that is computed
  bool workgroups = true;  // share the loops; if false, the plan is one of several that a workgroup runs
  // Positions on the vector axis at which no padding mirrors or repeats. The borders before and behind them
  // have separate loops. Equal: there are no borders.
  int64_t inner_begin = 0, inner_end = 0;
  // Square tiles of `loops.lanes` rows, along the vector axis and `tile_axis`. `transposed` loads are
  // contiguous along tile_axis; the tiles they bring are transposed in registers. -1: no tiles.
  int tile_axis = -1;
  std::vector<ElementLoad> transposed;
};

// Windows that slide along an axis of results: result p sees the positions p * step + k of a row. They are
// reduced in two steps: first each position along all other axes, into scratch; then each window.
struct WindowPlan {
  int out = -1, in = -1;  // axes: of p, and of k
  int64_t step = 1;
  int64_t size = 1;             // positions of a window
  int64_t begin = 0, end = -1;  // positions that need no guards along the row; end -1: the last of all
  int64_t results = 1;          // per block: at most this many along `out`
  int64_t rows = 1;             // of results, along the last other axis, that go through each step together
  // Returns the positions that `n` results of a row see.
  int64_t positions(int64_t n) const { return (n - 1) * step + size; }
};

struct ReducePlan {
  LoopPlan loops;
  std::optional<WindowPlan> window;  // vector_axis is its `out`
};

}  // namespace quernel::schedule
