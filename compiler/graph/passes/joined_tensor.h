// Concatenations of constants, which the graphs of several entry points share.
#pragma once

#include <vector>

#include "graph/tensor.h"
#include "support/expected.h"

namespace quernel {

// Returns the concatenation of `parts` along `dim`. Requires at least one, of one dtype, whose other dims are equal. While a
// result of the same bytes and `dim` is in use anywhere in the process, it is returned again. Pages of files that were
// read are given back.
Expected<Tensor> joined_tensor(const std::vector<Tensor>& parts, size_t dim);

}  // namespace quernel
