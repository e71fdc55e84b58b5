// Decides how many rows of scores an attention kernel holds at a time, in which tiles it computes them, and
// whether one kernel pays.
#pragma once

#include "schedule/schedule.h"
#include "targets/target.h"

namespace quernel::schedule {

// The memory an attention kernel needs for its rows of scores, in bytes of a GPU's shared memory.
struct ScoreRows {
  Dim width = 0;
  bool in_place = false;    // the last stage overwrites the scores
  bool in_parts = false;    // the stages are a softmax
  int64_t block_bytes = 0;  // per row of a block
  int64_t row_bytes = 0;    // for the row being processed by the stages
  // Without an attention kernel: the number of kernels for the rows, and how often these read or write all
  // scores.
  int kernels = 1, passes = 2;
};
ScoreRows score_rows(const Graph& graph, const Group& rows, ValueId scores);

struct AttentionBlock {
  int64_t rows = 0;  // 0: no block fits in a workgroup's shared memory
  int64_t keys = 0;  // of a row at a time; 0: all
};
// Returns the block of an attention kernel, and gives both contractions tiles for it.
AttentionBlock plan_block(ContractionPlan& scores, ContractionPlan& result, const ScoreRows& rows,
                          const Target& target);
// Returns whether one kernel takes less time than three, by estimate.
bool attention_pays(const ContractionPlan& scores, const ContractionPlan& result, const ScoreRows& rows,
                    const Target& target);

}  // namespace quernel::schedule
