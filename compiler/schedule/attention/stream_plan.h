// How a kernel computes attention of few rows: it streams through keys and values, each of which it reads once,
// where they are, and only as far as rows can see them.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/index_map.h"
#include "graph/ir.h"

namespace quernel::schedule {

// A bound of the keys that a row can see: key j is hidden unless j < value + plus, or j >= value + plus if
// `is_first`. `indices`: of the value, over the axes of the scores' contraction; keys are not among them.
struct KeyLimit {
  ValueId value = kNoValue;
  std::vector<IndexExpr> indices;
  int64_t plus = 0;
  bool is_first = false;
  bool by_row = false;  // rows have limits of their own
};

// A condition that holds (`holds`) or fails for all keys within the limits.
struct ShownCondition {
  ValueId value = kNoValue;
  bool holds = true;
};

struct StreamPlan {
  // An axis of both contractions, as an index of each one's axes.
  struct Axis {
    int scores = -1, result = -1;
    Dim extent = 1;
  };
  int scores = -1, result = -1;            // nodes: the contractions
  int key_operand = 1, value_operand = 1;  // of these
  ValueId x = kNoValue;                    // the softmax's operand, a function of the scores
  bool hidden_is_zero = false;             // rows that see no key have the result 0, not NaN
  std::vector<Axis> grid;                  // that queries, keys and values have, such as batches
  std::vector<Axis> rows;                  // that keys and values lack: heads that share keys, positions
  Axis key;                                // summed over by the result
  int depth_axis = -1;                     // of the scores: summed over
  int column_axis = -1;                    // of the result
  int64_t row_count = 1, keys = 0, depth = 0, columns = 0;
  std::vector<KeyLimit> limits;
  std::vector<ShownCondition> shown;

  // Chosen for the target.
  int depth_lanes = 1, column_lanes = 1;  // of the vectors that keys and values are read in
  int64_t keys_at_once = 1;               // whose scores are computed together: whole vectors of depth_lanes
  int64_t sums_at_once = 1;               // of these, so many share what is loaded of rows
  int64_t rows_at_once = 1;               // whose products with a key accumulate in registers
  bool holds_rows = false;                // these rows stay in registers, too
  int64_t value_rows = 1, value_vectors = 1;  // rows by vectors whose sums over values are in registers
  int64_t block_keys = 0;                     // whose scores are in scratch at a time
  int64_t prefetch_bytes =
      0;                  // how far ahead of what they read kernels ask for keys and values; 0: they do not
  int64_t parts = 1;      // that workgroups share the keys in; more than one: added by a kernel of its own
  bool combines = false;  // this kernel adds the parts
};

}  // namespace quernel::schedule
