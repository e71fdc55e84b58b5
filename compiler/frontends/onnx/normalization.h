// Normalisations that several operators end in, as values.
#pragma once

#include "frontends/onnx/node_import.h"

namespace quernel::onnx_import {

// (x - mean) / sqrt(variance + epsilon) over axes; x is wide.
struct Standardized {
  ValueId value, mean, inverse_deviation;
};
Standardized standardize(NodeImport& n, ValueId x, const std::vector<int64_t>& axes, double epsilon);
// x / sqrt(mean of squares + epsilon) over axes; x is wide. The mean is that of the squares.
Standardized divide_by_rms(NodeImport& n, ValueId x, const std::vector<int64_t>& axes, double epsilon);
// first, first + 1 … rank - 1
std::vector<int64_t> axes_from(int64_t first, int rank);

}  // namespace quernel::onnx_import
