// Functions of fixed-point numbers, as TensorFlow Lite's reference kernels compute them for LOGISTIC, TANH and SOFTMAX of
// 8 bits with two roundings (IntegerRounding::kDouble): polynomials and Newton's iteration, by products of 31 bits.
#pragma once

#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

// Each imports the node, of 8 bits.
Status fixed_point_logistic(NodeImport& n);
Status fixed_point_tanh(NodeImport& n);
Status fixed_point_hard_swish(NodeImport& n);
Status fixed_point_softmax(NodeImport& n, double beta);
// The same of 16 bits, of operands whose scale is 2^-12 (TANH: or 2^-11) and results of 2^-15: not TensorFlow Lite Micro,
// which has tables (int16_functions.h).
Status fixed_point_logistic_int16(NodeImport& n);
Status fixed_point_tanh_int16(NodeImport& n);

// Functions of values, as i64, with 15 bits besides the sign, of which operands have `integer_bits` before the point and
// results none.
ValueId fixed_point_logistic(ImportedNode& n, ValueId x, int integer_bits);
ValueId fixed_point_tanh(ImportedNode& n, ValueId x, int integer_bits);
// Returns x / 2^bits, rounded half away from zero. Requires bits > 0.
ValueId fixed_point_shift(ImportedNode& n, ValueId x, int bits);

}  // namespace quernel::tflite_import
