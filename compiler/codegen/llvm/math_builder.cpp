#include "codegen/llvm/math_builder.h"

#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/math_coefficients.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

MathBuilder::MathBuilder(llvm::IRBuilder<>& builder, const InstructionSet& isa, llvm::Type* type)
    : b_(builder),
      isa_(isa),
      has_(isa.floats(type)),
      type_(type),
      is_f32_(type->getScalarType()->isFloatTy()) {
  int_type_ = type->getWithNewType(builder.getIntNTy(is_f32_ ? 32 : 64));
  mantissa_bits_ = is_f32_ ? 23 : 52;
  bias_ = is_f32_ ? 127 : 1023;
}

MathBuilder MathBuilder::in_f64() const {
  return MathBuilder(b_, isa_, type_->getWithNewType(b_.getDoubleTy()));
}

MathBuilder::Value* MathBuilder::ci(uint64_t value) const {
  return llvm::ConstantInt::get(int_type_, llvm::APInt(is_f32_ ? 32 : 64, value, false, true));
}

MathBuilder::Value* MathBuilder::mul_add(Value* a, Value* b, Value* c) {
  if (!has_.fma) return add(mul(a, b), c);
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type_}, {a, b, c});
}

MathBuilder::Value* MathBuilder::polynomial(Table coefficients, Value* x) {
  Value* sum = c(coefficients.back());
  for (double coefficient : llvm::reverse(coefficients.drop_back())) sum = mul_add(sum, x, c(coefficient));
  return sum;
}

MathBuilder::Value* MathBuilder::odd_polynomial(Table coefficients, Value* x, Value* square) {
  return mul_add(mul(x, square), polynomial(coefficients, square), x);
}

// Integers of magnitude below 2^22 in the mantissa of 1.5 * 2^23 (or 2^52): no conversion instruction, which
// 64-bit integers lack before AVX-512.
MathBuilder::Value* MathBuilder::integer_to_float(Value* small) {
  Value* magic = pick(0x1.8p23, 0x1.8p52);
  return sub(from_bits(b_.CreateAdd(small, bits(magic))), magic);
}

// ---- rounding
// ---------------------------------------------------------------------------------------------------

// Adding 2^23 (2^52) with x's sign leaves no place for a fraction; larger values are integers already.
MathBuilder::Value* MathBuilder::round_by_adding(Value* x) {
  Value* limit = pick(0x1p23, 0x1p52);
  Value* magnitude = abs(x);
  Value* rounded = sub(add(magnitude, limit), limit);
  return copy_sign(select(less(magnitude, limit), rounded, magnitude), x);
}

MathBuilder::Value* MathBuilder::round_to_even(Value* x) {
  // A conversion that follows recognises the intrinsic.
  bool known = has_.rounding || (isa_.round_to_int && is_f32_);
  return known ? b_.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, x) : round_by_adding(x);
}

MathBuilder::Value* MathBuilder::trunc(Value* x) {
  if (has_.rounding) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, x);
  Value* magnitude = abs(x);
  Value* rounded = round_by_adding(magnitude);
  rounded = select(less(magnitude, rounded), sub(rounded, c(1.0)), rounded);
  return copy_sign(rounded, x);
}

MathBuilder::Value* MathBuilder::floor(Value* x) {
  if (has_.rounding) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::floor, x);
  Value* rounded = round_by_adding(x);
  return select(less(x, rounded), sub(rounded, c(1.0)), rounded);
}

MathBuilder::Value* MathBuilder::ceil(Value* x) {
  if (has_.rounding) return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, x);
  Value* rounded = round_by_adding(x);
  return copy_sign(select(less(rounded, x), add(rounded, c(1.0)), rounded), x);  // -0.5 gives -0
}

// ---- exponentials
// -----------------------------------------------------------------------------------------------

// The integer n comes out of the low mantissa bits of 1.5 * 2^23 + x / ln 2.
MathBuilder::ReducedExp MathBuilder::reduce_exp(Value* x) {
  Table ln2 = is_f32_ ? Table(kF32Ln2) : Table(kF64Ln2);
  Value* magic = pick(0x1.8p23, 0x1.8p52);
  Value* shifted = mul_add(x, c(0x1.71547652b82fep+0), magic);
  Value* n = sub(shifted, magic);
  Value* r = mul_add(n, c(-ln2[0]), x);  // exact, the first part of ln 2 is short
  r = mul_add(n, c(-ln2[1]), r);
  Value* p = mul_add(mul(r, r), polynomial(is_f32_ ? Table(kF32Exp) : Table(kF64Exp), r), r);
  return {p, n, b_.CreateSub(bits(shifted), bits(magic))};
}

MathBuilder::Value* MathBuilder::scale_normal(Value* v, Value* n_int) {
  Value* power = b_.CreateShl(b_.CreateAdd(n_int, ci(static_cast<uint64_t>(bias_))),
                              ci(static_cast<uint64_t>(mantissa_bits_)));
  return mul(v, from_bits(power));
}

// Whole registers of AVX-512: vscalef, which takes any n and rounds denormal results once.
MathBuilder::Value* MathBuilder::scale_by_instruction(Value* v, Value* n) {
  auto* vector = llvm::cast<llvm::FixedVectorType>(type_);
  unsigned lanes = vector->getNumElements(), step = is_f32_ ? 16 : 8;
  auto* whole = llvm::FixedVectorType::get(vector->getElementType(), step);
  auto id = is_f32_ ? llvm::Intrinsic::x86_avx512_mask_scalef_ps_512
                    : llvm::Intrinsic::x86_avx512_mask_scalef_pd_512;
  Value* all = llvm::ConstantInt::getAllOnesValue(b_.getIntNTy(step));
  Value* result = llvm::PoisonValue::get(type_);
  for (unsigned i = 0; i < lanes; i += step) {
    Value* part = lanes == step ? v : b_.CreateExtractVector(whole, v, uint64_t{i});
    Value* part_n = lanes == step ? n : b_.CreateExtractVector(whole, n, uint64_t{i});
    part = b_.CreateIntrinsic(id, {}, {part, part_n, llvm::PoisonValue::get(whole), all, b_.getInt32(4)});
    result = lanes == step ? part : b_.CreateInsertVector(type_, result, part, uint64_t{i});
  }
  return result;
}

MathBuilder::Value* MathBuilder::scale(Value* v, Value* n, Value* n_int) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
  if (isa_.avx512 && vector && vector->getNumElements() % (is_f32_ ? 16 : 8) == 0)
    return scale_by_instruction(v, n);
  Value* half = b_.CreateAShr(n_int, ci(1));
  return scale_normal(scale_normal(v, half), b_.CreateSub(n_int, half));
}

MathBuilder::Value* MathBuilder::exp(Value* x) {
  x = is_f32_ ? at_most(89, at_least(-104, x)) : at_most(710, at_least(-746, x));
  ReducedExp r = reduce_exp(x);
  return scale(add(r.p, c(1.0)), r.n, r.n_int);
}

MathBuilder::Value* MathBuilder::exp2(Value* x) {
  x = is_f32_ ? at_most(129, at_least(-151, x)) : at_most(1025, at_least(-1076, x));
  Value* magic = pick(0x1.8p23, 0x1.8p52);
  Value* shifted = add(x, magic);
  Value* n = sub(shifted, magic);
  Value* r = sub(x, n);
  Value* v = mul_add(r, polynomial(is_f32_ ? Table(kF32Exp2) : Table(kF64Exp2), r), c(1.0));
  return scale(v, n, b_.CreateSub(bits(shifted), bits(magic)));
}

// 2^n (p + 1) - 1 as 2 (2^(n-1) p + (2^(n-1) - 1/2)), so that the largest n does not overflow.
MathBuilder::Value* MathBuilder::expm1(Value* x) {
  Value* limited = is_f32_ ? at_most(89, at_least(-20, x)) : at_most(710, at_least(-42, x));
  ReducedExp r = reduce_exp(limited);
  Value* t = scale_normal(c(1.0), b_.CreateSub(r.n_int, ci(1)));
  Value* half = mul_add(t, r.p, sub(t, c(0.5)));
  return select(less(abs(x), pick(0x1p-26, 0x1p-55)), x, add(half, half));  // tiny x, and the sign of zero
}

MathBuilder::Value* MathBuilder::tanh(Value* x) {
  Value* y = abs(x);
  Value* small = odd_polynomial(is_f32_ ? Table(kF32Tanh) : Table(kF64Tanh), y, mul(y, y));
  Value* limited = is_f32_ ? at_most(9.125, y) : at_most(19.5, y);
  ReducedExp r = reduce_exp(add(limited, limited));
  Value* e = scale_normal(add(r.p, c(1.0)), r.n_int);
  Value* large = sub(c(1.0), div(c(2.0), add(e, c(1.0))));
  return copy_sign(select(less(y, c(0.625)), small, large), x);
}

// With E = e^|x| / 2: E -+ 1 / (4 E). Below 1, sinh is a polynomial.
MathBuilder::Value* MathBuilder::sinh_or_cosh(bool is_sinh, Value* x) {
  Value* y = abs(x);
  ReducedExp r = reduce_exp(is_f32_ ? at_most(90, y) : at_most(711, y));
  Value* e = scale(add(r.p, c(1.0)), sub(r.n, c(1.0)), b_.CreateSub(r.n_int, ci(1)));
  Value* rest = div(c(0.25), e);
  if (!is_sinh) return add(e, rest);
  Value* small = odd_polynomial(is_f32_ ? Table(kF32Sinh) : Table(kF64Sinh), y, mul(y, y));
  return copy_sign(select(less(y, c(1.0)), small, sub(e, rest)), x);
}

// Above 1: 1 - erfc(x), whose logarithm is -x^2 plus a polynomial of small values.
MathBuilder::Value* MathBuilder::erf(Value* x) {
  Value* y = abs(x);
  Value* small = mul_add(y, polynomial(is_f32_ ? Table(kF32Erf) : Table(kF64Erf), mul(y, y)), y);
  Value* limited = is_f32_ ? at_most(4, y) : at_most(6, y);
  Value* t = sub(limited, pick(2.5, 3.5));
  Value* log_erfcx = polynomial(is_f32_ ? Table(kF32LogErfcx) : Table(kF64LogErfcx), t);
  ReducedExp r = reduce_exp(mul_add(limited, b_.CreateFNeg(limited), log_erfcx));
  Value* large = sub(c(1.0), scale_normal(add(r.p, c(1.0)), r.n_int));
  return copy_sign(select(less(y, c(1.0)), small, large), x);
}

// ---- logarithms
// -------------------------------------------------------------------------------------------------

// 1 + f in [sqrt(1/2), sqrt(2)), from the bits; denormals are scaled up first.
MathBuilder::ReducedLog MathBuilder::reduce_log(Value* x) {
  Value* denormal = less(x, pick(0x1p-126, 0x1p-1022));
  Value* i = bits(select(denormal, mul(x, pick(0x1p24, 0x1p54)), x));
  Value* root_half = bits(c(0x1.6a09e667f3bcdp-1));
  Value* shifted = b_.CreateSub(i, root_half);
  Value* e = b_.CreateAShr(shifted, ci(static_cast<uint64_t>(mantissa_bits_)));
  e = select(denormal, b_.CreateSub(e, ci(is_f32_ ? 24 : 54)), e);
  Value* mantissa = b_.CreateAnd(shifted, ci((uint64_t{1} << mantissa_bits_) - 1));
  Value* m = from_bits(b_.CreateAdd(mantissa, root_half));
  return {sub(m, c(1.0)), integer_to_float(e)};
}

// e ln 2 + log(1 + f) + correction, the large terms last.
MathBuilder::Value* MathBuilder::log_of_reduced(ReducedLog x, Value* correction) {
  Table ln2 = is_f32_ ? Table(kF32Ln2) : Table(kF64Ln2);
  Value* square = mul(x.f, x.f);
  Value* y;
  if (is_f32_) {
    y = mul(mul(square, x.f), polynomial(kF32Log, x.f));
  } else {  // with h = f^2/2, s = f/(2+f): log(1+f) = f - (h - s (h + s^2 P(s^2)))
    Value* s = div(x.f, add(x.f, c(2.0)));
    Value* z = mul(s, s);
    y = mul(s, mul_add(z, polynomial(kF64Log, z), mul(square, c(0.5))));
  }
  y = mul_add(x.e, c(ln2[1]), y);
  if (correction) y = add(y, correction);
  y = add(x.f, mul_add(square, c(-0.5), y));
  return mul_add(x.e, c(ln2[0]), y);
}

// `argument` is what the logarithm is of, x what a result of infinity is copied from.
MathBuilder::Value* MathBuilder::log_edges(Value* x, Value* argument, Value* result) {
  Value* zero = c(0.0);
  result = select(equal(x, infinity()), x, result);
  Value* outside = select(equal(argument, zero), llvm::ConstantFP::getInfinity(type_, true), nan());
  return select(less(zero, argument), result, outside);
}

MathBuilder::Value* MathBuilder::log(Value* x) {
  return log_edges(x, x, log_of_reduced(reduce_log(x), nullptr));
}

// log(1 + f) is split into a short high part and a rest, so that the product with 1/ln 2 is nearly exact.
MathBuilder::Value* MathBuilder::log2(Value* x) {
  Table log2e = is_f32_ ? Table(kF32Log2e) : Table(kF64Log2e);
  ReducedLog r = reduce_log(x);
  Value* half_square = mul(mul(r.f, r.f), c(0.5));
  Value* high = sub(r.f, half_square);
  high = from_bits(b_.CreateAnd(bits(high), ci(is_f32_ ? ~uint64_t{0xfff} : ~uint64_t{0xffffffff})));
  Value* low;
  if (is_f32_) {
    Value* tail = mul(mul(mul(r.f, r.f), r.f), polynomial(kF32Log, r.f));
    low = add(sub(sub(r.f, high), half_square), tail);
  } else {
    Value* s = div(r.f, add(r.f, c(2.0)));
    Value* z = mul(s, s);
    low = add(sub(sub(r.f, high), half_square), mul(s, mul_add(z, polynomial(kF64Log, z), half_square)));
  }
  Value* product = mul(high, c(log2e[0]));  // exact
  Value* rest = add(mul(add(low, high), c(log2e[1])), mul(low, c(log2e[0])));
  Value* sum = add(r.e, product);
  rest = add(rest, add(sub(r.e, sum), product));
  return log_edges(x, x, add(rest, sum));
}

// log(u) with u = 1 + x rounded, plus what rounding lost; where u is near 1, x itself is f.
MathBuilder::Value* MathBuilder::log1p(Value* x) {
  Value* u = add(x, c(1.0));
  ReducedLog r = reduce_log(u);
  Value* near_one = equal(r.e, c(0.0));
  Value* lost = select(less(c(1.0), x), sub(c(1.0), sub(u, x)), sub(x, sub(u, c(1.0))));
  Value* correction = select(near_one, c(0.0), div(lost, u));
  r.f = select(near_one, x, r.f);
  Value* result = log_edges(x, u, log_of_reduced(r, correction));
  return select(less(abs(x), pick(0x1p-26, 0x1p-55)), x, result);
}

// log(y + sqrt(y^2 + 1)); where the square would overflow, log(y) + ln 2.
MathBuilder::Value* MathBuilder::asinh(Value* x) {
  Value* y = abs(x);
  Value* large = less(pick(0x1p30, 0x1p60), y);
  Value* square = mul(y, y);
  Value* t = add(y, div(square, add(c(1.0), sqrt(add(square, c(1.0))))));
  Value* result = log1p(select(large, y, t));
  result = add(result, select(large, c(0x1.62e42fefa39efp-1), c(0.0)));
  return copy_sign(result, x);
}

MathBuilder::Value* MathBuilder::acosh(Value* x) {
  Value* t = sub(x, c(1.0));
  Value* large = less(pick(0x1p30, 0x1p60), x);
  Value* sum = add(t, sqrt(mul_add(t, t, add(t, t))));
  Value* result = log1p(select(large, x, sum));
  result = add(result, select(large, c(0x1.62e42fefa39efp-1), c(0.0)));
  return select(less(x, c(1.0)), nan(), result);
}

// log1p(2 y / (1 - y)) / 2.
MathBuilder::Value* MathBuilder::atanh(Value* x) {
  Value* y = abs(x);
  Value* twice = add(y, y);
  Value* t = add(twice, div(mul(twice, y), sub(c(1.0), y)));
  return select(less(c(1.0), y), nan(), copy_sign(mul(log1p(t), c(0.5)), x));
}

MathBuilder::Value* MathBuilder::unary(UnaryOp op, Value* x) {
  switch (op) {
    case UnaryOp::k_floor:
      return floor(x);
    case UnaryOp::k_ceil:
      return ceil(x);
    case UnaryOp::k_round:
      return round_to_even(x);
    case UnaryOp::k_trunc:
      return trunc(x);
    case UnaryOp::k_exp:
      return exp(x);
    case UnaryOp::k_exp2:
      return exp2(x);
    case UnaryOp::k_expm1:
      return expm1(x);
    case UnaryOp::k_log:
      return log(x);
    case UnaryOp::k_log2:
      return log2(x);
    case UnaryOp::k_log1p:
      return log1p(x);
    case UnaryOp::k_sin:
    case UnaryOp::k_cos:
    case UnaryOp::k_tan:
      return sin_cos_tan(op, x);
    case UnaryOp::k_asin:
      return asin(x);
    case UnaryOp::k_acos:
      return acos(x);
    case UnaryOp::k_atan:
      return atan(x);
    case UnaryOp::k_sinh:
      return sinh_or_cosh(true, x);
    case UnaryOp::k_cosh:
      return sinh_or_cosh(false, x);
    case UnaryOp::k_tanh:
      return tanh(x);
    case UnaryOp::k_asinh:
      return asinh(x);
    case UnaryOp::k_acosh:
      return acosh(x);
    case UnaryOp::k_atanh:
      return atanh(x);
    case UnaryOp::k_erf:
      return erf(x);
    default:
      QUERNEL_UNREACHABLE("not a transcendental function");
  }
}

}  // namespace quernel::codegen
