// Recognises a softmax in the stages of a kRows group.
#pragma once

#include <optional>

#include "schedule/schedule.h"

namespace quernel::schedule {

// A softmax of `x` along rows, for which a kernel may see one part of the row at a time.
struct RowSoftmax {
  ValueId x = kNoValue;         // the scores, or a function of each score by itself
  bool hidden_is_zero = false;  // weights of a row without a finite score are 0; else they are NaN
};
// Returns what the stages of `rows` do to scores, where that is just a softmax.
//   max = reduce_max x; e = exp(x - max); weights = e / reduce_sum e
//   or = e * recip reduce_sum e, with 0 instead of a max of -inf, and then with 1 instead of a sum of 0
std::optional<RowSoftmax> row_softmax(const Graph& graph, const Group& rows, ValueId scores);

}  // namespace quernel::schedule
