// Transcendental functions as straight-line vector code without libm: argument reduction and the polynomials
// of math_coefficients.h, for float and double, scalars and vectors. README.md has the error bounds. The
// builder's position may move to a new block, because large arguments of sin, cos and tan take a branch.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <utility>

#include "codegen/llvm/instruction_set.h"
#include "support/scalar_ops.h"

namespace quernel::codegen {

class MathBuilder {
 public:
  using Value = llvm::Value;

  // `type`: float or double, or a vector of them; the type of all operands.
  MathBuilder(llvm::IRBuilder<>& builder, const InstructionSet& isa, llvm::Type* type);

  Value* unary(UnaryOp op, Value* x);
  Value* pow(Value* x, Value* y);
  Value* floor(Value* x);
  Value* ceil(Value* x);
  Value* trunc(Value* x);
  Value* round_to_even(Value* x);

 private:
  using Table = llvm::ArrayRef<double>;
  struct ReducedExp {
    Value* p;  // e^r - 1, where x = n ln 2 + r
    Value* n;  // as a float
    Value* n_int;
  };
  struct ReducedLog {
    Value* f;  // x = 2^e (1 + f)
    Value* e;  // as a float
  };
  struct ReducedAngle {
    Value* r;         // in [-pi/4, pi/4]
    Value* quadrant;  // integers; only the low two bits matter
  };

  // math_builder.cpp: exponentials, logarithms and functions based on them
  Value* exp(Value* x);
  Value* exp2(Value* x);
  Value* expm1(Value* x);
  Value* log(Value* x);
  Value* log2(Value* x);
  Value* log1p(Value* x);
  Value* tanh(Value* x);
  Value* sinh_or_cosh(bool is_sinh, Value* x);
  Value* asinh(Value* x);
  Value* acosh(Value* x);
  Value* atanh(Value* x);
  Value* erf(Value* x);
  ReducedExp reduce_exp(Value* x);
  Value* scale(Value* v, Value* n, Value* n_int);  // v 2^n; denormal results are rounded once
  Value* scale_normal(Value* v, Value* n_int);     // the same for normal results
  Value* scale_by_instruction(Value* v, Value* n);
  ReducedLog reduce_log(Value* x);
  Value* log_of_reduced(ReducedLog x, Value* correction);
  Value* log_edges(Value* x, Value* argument, Value* result);

  // math_trigonometry.cpp
  Value* sin_cos_tan(UnaryOp op, Value* x);
  Value* asin(Value* x);
  Value* acos(Value* x);
  Value* atan(Value* x);
  ReducedAngle reduce_angle(Value* x);
  ReducedAngle reduce_large_angles(Value* x, Value* is_large, ReducedAngle small);
  llvm::Function* large_angles_function();
  llvm::Function* large_angle_function();

  // math_pow.cpp
  Value* pow_by_multiplication(Value* x, int n);
  Value* pow_f32(Value* x, Value* y);
  Value* pow_f64(Value* x, Value* y);
  Value* pow_edges(Value* x, Value* y, Value* magnitude);
  struct Pair {
    Value* high;
    Value* low;
  };
  Pair exact_sum(Value* a, Value* b);  // |a| >= |b|
  Pair exact_product(Value* a, Value* b);
  Pair log_pair(Value* x);

  // Short forms, all on `type_` and integers of the same width and lanes.
  Value* c(double value) const { return llvm::ConstantFP::get(type_, value); }
  Value* ci(uint64_t value) const;
  Value* pick(double f32, double f64) const { return c(is_f32_ ? f32 : f64); }
  Value* infinity() const { return llvm::ConstantFP::getInfinity(type_); }
  Value* nan() const { return llvm::ConstantFP::getNaN(type_); }
  Value* add(Value* a, Value* b) { return b_.CreateFAdd(a, b); }
  Value* sub(Value* a, Value* b) { return b_.CreateFSub(a, b); }
  Value* mul(Value* a, Value* b) { return b_.CreateFMul(a, b); }
  Value* div(Value* a, Value* b) { return b_.CreateFDiv(a, b); }
  Value* mul_add(Value* a, Value* b, Value* c);  // fused if the target can
  Value* abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* sqrt(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x); }
  Value* copy_sign(Value* x, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, x, sign);
  }
  Value* select(Value* condition, Value* a, Value* b) { return b_.CreateSelect(condition, a, b); }
  Value* less(Value* a, Value* b) { return b_.CreateFCmpOLT(a, b); }
  Value* equal(Value* a, Value* b) { return b_.CreateFCmpOEQ(a, b); }
  Value* at_least(double low, Value* x) { return select(less(x, c(low)), c(low), x); }  // passes NaN through
  Value* at_most(double high, Value* x) {
    return select(less(c(high), x), c(high), x);
  }  // passes NaN through
  Value* bits(Value* x) { return b_.CreateBitCast(x, int_type_); }
  Value* from_bits(Value* i) { return b_.CreateBitCast(i, type_); }
  Value* polynomial(Table coefficients, Value* x);
  Value* odd_polynomial(Table coefficients, Value* x, Value* square);  // x + x^3 P(x^2)
  Value* integer_to_float(Value* small);                               // |small| < 2^22
  Value* round_by_adding(Value* x);
  MathBuilder in_f64() const;

  llvm::IRBuilder<>& b_;
  const InstructionSet& isa_;
  const InstructionSet::Floats& has_;
  llvm::Type* type_;
  llvm::Type* int_type_;
  bool is_f32_;
  int mantissa_bits_;
  int bias_;
};

}  // namespace quernel::codegen
