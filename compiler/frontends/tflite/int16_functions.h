// Functions of int16 operands as TensorFlow Lite's kernels compute them: tables with linear interpolation.
#pragma once

#include <functional>
#include <vector>

#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

// Returns 513 integers: the function at 512 steps from `lo` and at `hi`, times `factor`, moved by half of what linear
// interpolation is off by in the middle of a step.
std::vector<int64_t> int16_table(const std::function<double(double)>& function, double lo, double hi,
                                 double factor);
// Returns the table's value at x, an int16, as i32.
ValueId interpolate(ImportedNode& n, ValueId x, const std::vector<int64_t>& table);

// Each imports the node. Results have a scale of 2^-15.
Status int16_logistic(NodeImport& n);
Status int16_tanh(NodeImport& n);
Status int16_softmax(NodeImport& n, double beta);

}  // namespace quernel::tflite_import
