// Reference arithmetic on single elements, held as bits (the element's own representation, zero-extended). It
// implements the semantics of support/scalar_ops.h and CORE_OPS bit for bit. Constant folding and the
// interpreter share it.
#pragma once

#include <cstdint>

#include "support/dtype.h"
#include "support/scalar_ops.h"

namespace quernel::loop {

double bits_to_double(DType dtype, uint64_t bits);   // floats, exact
uint64_t double_to_bits(DType dtype, double value);  // floats, round to nearest even
int64_t bits_to_int(DType dtype, uint64_t bits);     // integers and bool, sign-extended; u64 wraps
uint64_t int_to_bits(DType dtype, int64_t value);    // integers wrap; bool is value != 0

uint64_t evaluate_unary(UnaryOp op, DType dtype, uint64_t x);
// Comparisons return 0 or 1.
uint64_t evaluate_binary(BinaryOp op, DType dtype, uint64_t a, uint64_t b);
uint64_t evaluate_mul_acc(DType dtype, uint64_t a, uint64_t b, uint64_t c);  // floats: one rounding
uint64_t evaluate_dot(DType a_dtype, DType b_dtype, DType sum_dtype, uint64_t a, uint64_t b, uint64_t c);
uint64_t evaluate_cast(DType from, DType to, uint64_t bits);

// Return whether an operation is defined on an element type.
bool unary_accepts(UnaryOp op, DType dtype);
bool binary_accepts(BinaryOp op, DType dtype);
bool is_storage_only(DType dtype);  // i4 u4 f8*: loaded, stored and cast, never computed with

}  // namespace quernel::loop
