// Elementwise operators of quantized operands.
#pragma once

#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {

// Each imports the node, or refuses its dtypes. `subtract`: the second operand counts negative.
Status quantized_add(NodeImport& n, bool subtract, bool power_of_two, ActivationFunctionType function);
Status quantized_mul(NodeImport& n, ActivationFunctionType function);
Status quantized_div(NodeImport& n, ActivationFunctionType function);
Status quantized_squared_difference(NodeImport& n);
Status quantized_comparison(NodeImport& n, BinaryOp op);
// The result's integers are those of the operand, scaled, within the range of a real interval.
Status quantized_clamp(NodeImport& n, const ClampRange& range);
Status quantized_abs(NodeImport& n);
Status quantized_neg(NodeImport& n);
Status quantized_leaky_relu(NodeImport& n, float alpha);
Status quantized_prelu(NodeImport& n);

}  // namespace quernel::tflite_import
