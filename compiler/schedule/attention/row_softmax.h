// Recognises a softmax in the stages of a kRows group.
#pragma once

#include <optional>

#include "schedule/schedule.h"

namespace quernel::schedule {

// A softmax of `x` along rows; a kernel may process a row in parts.
struct RowSoftmax {
  ValueId x = kNoValue;         // the scores, or an elementwise function of them
  bool hidden_is_zero = false;  // the weights of a row without a finite score are 0, not NaN
};
// Returns the softmax if the stages of `rows` compute just a softmax of the scores.
//   max = reduce_max x; e = exp(x - max); weights = e / reduce_sum e
//   or = e * recip reduce_sum e, with 0 instead of a max of -inf, and then with 1 instead of a sum of 0
std::optional<RowSoftmax> row_softmax(const Graph& graph, const Group& rows, ValueId scores);

}  // namespace quernel::schedule
