// Powers. f32 goes through f64 logarithm and exponential, so that the result is that of a single rounding
// nearly always; f64 carries the logarithm as a pair of doubles. Edge cases are those of C99, annex F.
#include "codegen/llvm/math_builder.h"
#include "codegen/llvm/math_coefficients.h"

namespace quernel::codegen {
namespace {

// The value that all lanes of a constant have.
const llvm::ConstantFP* splat_value(llvm::Value* v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  if (constant && v->getType()->isVectorTy()) constant = constant->getSplatValue();
  return llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
}

}  // namespace

MathBuilder::Value* MathBuilder::pow(Value* x, Value* y) {
  if (const llvm::ConstantFP* constant = splat_value(y)) {
    double exponent =
        is_f32_ ? constant->getValueAPF().convertToFloat() : constant->getValueAPF().convertToDouble();
    if (exponent == 0) return c(1.0);
    if (exponent == 1) return x;
    if (exponent == -1) return div(c(1.0), x);
    if (exponent == 2) return mul(x, x);
    if (exponent == 0.5) {  // -0 gives 0, -inf gives inf
      Value* root = sqrt(add(x, c(0.0)));
      return select(equal(x, llvm::ConstantFP::getInfinity(type_, true)), infinity(), root);
    }
    if (is_f32_ && exponent == static_cast<int>(exponent) && std::abs(exponent) <= 16)
      return pow_by_multiplication(x, static_cast<int>(exponent));
  }
  Value* result = is_f32_ ? pow_f32(x, y) : pow_f64(x, y);
  return select(equal(y, c(2.0)), mul(x, x), pow_edges(x, y, result));
}

// In f64, which neither overflows nor loses more than a few of its last places.
MathBuilder::Value* MathBuilder::pow_by_multiplication(Value* x, int n) {
  MathBuilder wide = in_f64();
  Value* square = b_.CreateFPExt(x, wide.type_);
  Value* result = nullptr;
  for (int rest = std::abs(n); rest != 0; rest >>= 1) {
    if (rest & 1) result = result ? mul(result, square) : square;
    if (rest > 1) square = mul(square, square);
  }
  if (n < 0) result = div(wide.c(1.0), result);
  return b_.CreateFPTrunc(result, type_);
}

// |x|^y for finite non-zero x; f64's exponent range makes denormal inputs and results ordinary.
MathBuilder::Value* MathBuilder::pow_f32(Value* x, Value* y) {
  MathBuilder wide = in_f64();
  Value* magnitude = b_.CreateFPExt(abs(x), wide.type_);
  ReducedLog r = wide.reduce_log(magnitude);
  Value* s = div(r.f, add(r.f, wide.c(2.0)));
  Value* z = mul(s, s);
  Value* log_m = wide.mul_add(mul(s, z), wide.polynomial(kF64Log, z), add(s, s));
  Value* log2 = wide.mul_add(log_m, wide.c(0x1.71547652b82fep+0), r.e);
  log2 = select(equal(magnitude, wide.infinity()), wide.infinity(), log2);
  log2 = select(equal(magnitude, wide.c(0.0)), llvm::ConstantFP::getInfinity(wide.type_, true), log2);
  Value* t = wide.at_most(200, wide.at_least(-200, mul(b_.CreateFPExt(y, wide.type_), log2)));
  Value* magic = wide.c(0x1.8p52);
  Value* shifted = add(t, magic);
  Value* remainder = sub(t, sub(shifted, magic));
  Value* v = wide.mul_add(remainder, wide.polynomial(kF64Exp2, remainder), wide.c(1.0));
  return b_.CreateFPTrunc(wide.scale_normal(v, b_.CreateSub(wide.bits(shifted), wide.bits(magic))), type_);
}

// Signs, and what the general formula gets wrong: 1^y, x^0, (-1)^inf, negative bases, NaN.
MathBuilder::Value* MathBuilder::pow_edges(Value* x, Value* y, Value* magnitude) {
  Value* zero = c(0.0);
  Value* one = c(1.0);
  Value* is_integer = equal(trunc(y), y);
  Value* half = mul(y, c(0.5));
  Value* is_odd = b_.CreateAnd(is_integer, b_.CreateFCmpUNE(trunc(half), half));
  Value* result = select(equal(abs(x), one), one, magnitude);
  Value* signed_result = copy_sign(result, x);
  result = select(is_odd, signed_result, result);
  Value* below_zero = b_.CreateAnd(less(x, zero), less(llvm::ConstantFP::getInfinity(type_, true), x));
  result = select(b_.CreateAnd(below_zero, b_.CreateNot(is_integer)), nan(), result);
  result = select(b_.CreateFCmpUNO(x, y), nan(), result);
  Value* is_one = b_.CreateOr(equal(x, one), equal(y, zero));
  return select(is_one, one, result);
}

MathBuilder::Pair MathBuilder::exact_sum(Value* a, Value* b) {
  Value* sum = add(a, b);
  return {sum, sub(b, sub(sum, a))};
}

// By FMA, or by splitting the factors in halves.
MathBuilder::Pair MathBuilder::exact_product(Value* a, Value* b) {
  Value* product = mul(a, b);
  if (has_.fma) return {product, mul_add(a, b, b_.CreateFNeg(product))};
  auto halves = [&](Value* v) {
    Value* high = from_bits(b_.CreateAnd(bits(v), ci(~uint64_t{0x7ffffff})));
    return Pair{high, sub(v, high)};
  };
  Pair p = halves(a), q = halves(b);
  Value* error = sub(mul(p.high, q.high), product);
  error = add(error, mul(p.high, q.low));
  error = add(error, mul(p.low, q.high));
  return {product, add(error, mul(p.low, q.low))};
}

// log(x) as a pair, for positive finite x. With s = f / (2 + f): 2s and 2/3 s^3 as pairs, the rest is small
// enough.
MathBuilder::Pair MathBuilder::log_pair(Value* x) {
  ReducedLog r = reduce_log(x);
  Value* denominator = add(r.f, c(2.0));
  Value* denominator_low = sub(r.f, sub(denominator, c(2.0)));
  Value* s = div(r.f, denominator);
  // f - s (denominator + denominator_low), exactly but for its own rounding.
  Pair back = exact_product(s, denominator);
  Value* rest = sub(sub(sub(r.f, back.high), back.low), mul(s, denominator_low));
  Value* s_low = div(rest, denominator);
  Pair square = exact_product(s, s);
  square.low = add(square.low, mul(mul(s, s_low), c(2.0)));
  Pair cube = exact_product(square.high, s);
  cube.low = add(cube.low, add(mul(square.high, s_low), mul(square.low, s)));
  Pair third = exact_product(cube.high, c(0x1.5555555555555p-1));
  third.low =
      add(third.low, add(mul(cube.low, c(0x1.5555555555555p-1)), mul(cube.high, c(0x1.5555555555555p-55))));
  // P(z) without its first coefficient, 2/3: that of the series is what `third` has.
  Value* z = square.high;
  Value* higher = mul(mul(cube.high, z), polynomial(Table(kF64LogTail), z));
  // e ln 2 + 2 s + third + higher, largest first.
  Pair leading = exact_sum(mul(r.e, c(kF64Ln2[0])), add(s, s));
  Value* no_exponent = equal(r.e, c(0.0));
  leading.high = select(no_exponent, add(s, s), leading.high);
  leading.low = select(no_exponent, c(0.0), leading.low);
  Pair sum = exact_sum(leading.high, third.high);
  Value* low = add(mul(r.e, c(kF64Ln2[1])), add(s_low, s_low));
  low = add(low, add(add(leading.low, sum.low), add(third.low, higher)));
  return exact_sum(sum.high, low);
}

MathBuilder::Value* MathBuilder::pow_f64(Value* x, Value* y) {
  Value* magnitude = abs(x);
  Pair log = log_pair(magnitude);
  y = at_most(0x1p66, at_least(-0x1p66, y));  // larger ones do not change the result, but overflow
  Pair t = exact_product(log.high, y);
  t.low = add(t.low, mul(log.low, y));
  Value* is_infinite = equal(magnitude, infinity());
  Value* is_zero = equal(magnitude, c(0.0));
  Value* edge = mul(y, select(is_zero, c(-1.0), c(1.0)));  // the sign of t at the ends
  t.high = select(b_.CreateOr(is_infinite, is_zero), mul(edge, infinity()), t.high);
  Value* limited = at_most(710, at_least(-746, t.high));
  t.low = select(equal(limited, t.high), t.low, c(0.0));
  ReducedExp r = reduce_exp(limited);
  Value* p = add(r.p, mul_add(r.p, t.low, t.low));
  return scale(add(p, c(1.0)), r.n, r.n_int);
}

}  // namespace quernel::codegen
