// Elementwise operators: unary, binary with numpy broadcasting, variadic, comparisons, casts.
#include <cmath>

#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

Status import_unary(NodeImport& n, UnaryOp op) { return n.output(n.unary(op, n.in(0))); }
Status import_binary(NodeImport& n, BinaryOp op) { return n.output(n.binary(op, n.in(0), n.in(1))); }

// Operators whose result is a left fold of one binary op over all operands.
ValueId fold_operands(NodeImport& n, BinaryOp op) {
  ValueId result = n.in(0);
  for (int i = 1; i < n.input_count(); ++i) result = n.binary(op, result, n.in(i));
  return result;
}

// What x86's conversion gives, as ONNX Runtime does there: the least integer for a float out of range or NaN,
// where the conversion is one to 32 bits, of which narrower results keep the lowest.
ValueId wrapped_cast(NodeImport& n, ValueId x, DType dtype) {
  DType through = dtype == DType::kI64 ? DType::kI64 : DType::kI32;
  double limit = through == DType::kI64 ? 0x1p63 : 0x1p31;
  x = n.widen(x);
  ValueId fits =
      n.binary(BinaryOp::k_and, n.binary(BinaryOp::k_ge, x, -limit), n.binary(BinaryOp::k_lt, x, limit));
  return n.build.cast(n.build.where(fits, n.build.cast(x, through), n.scalar(through, -limit)), dtype);
}

// Floats out of range of a 4-bit integer are left open by ONNX; its reference data wrap, so the cast goes
// through i32.
ValueId cast(NodeImport& n, ValueId x, DType dtype) {
  bool packed = dtype == DType::kI4 || dtype == DType::kU4;
  bool wraps = dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kU16 ||
               dtype == DType::kI32 || dtype == DType::kI64;
  if (n.choices.wrapped_casts && wraps && is_float(n.dtype(x))) return wrapped_cast(n, x, dtype);
  if (packed && is_float(n.dtype(x))) x = n.build.cast(x, DType::kI32);
  return n.build.cast(x, dtype);
}

BinaryOp division(DType dtype) { return is_float(dtype) ? BinaryOp::k_div : BinaryOp::k_idiv; }

}  // namespace

#define QUERNEL_IMPORT_UNARY(name, op) \
  Status import_##name(NodeImport& n) { return import_unary(n, UnaryOp::k_##op); }
QUERNEL_IMPORT_UNARY(abs, abs)
QUERNEL_IMPORT_UNARY(acos, acos)
QUERNEL_IMPORT_UNARY(acosh, acosh)
QUERNEL_IMPORT_UNARY(asin, asin)
QUERNEL_IMPORT_UNARY(asinh, asinh)
QUERNEL_IMPORT_UNARY(atan, atan)
QUERNEL_IMPORT_UNARY(atanh, atanh)
QUERNEL_IMPORT_UNARY(bitwise_not, bit_not)
QUERNEL_IMPORT_UNARY(ceil, ceil)
QUERNEL_IMPORT_UNARY(cos, cos)
QUERNEL_IMPORT_UNARY(cosh, cosh)
QUERNEL_IMPORT_UNARY(erf, erf)
QUERNEL_IMPORT_UNARY(exp, exp)
QUERNEL_IMPORT_UNARY(floor, floor)
QUERNEL_IMPORT_UNARY(is_nan, is_nan)
QUERNEL_IMPORT_UNARY(log, log)
QUERNEL_IMPORT_UNARY(neg, neg)
QUERNEL_IMPORT_UNARY(not, not )
QUERNEL_IMPORT_UNARY(reciprocal, recip)
QUERNEL_IMPORT_UNARY(round, round)
QUERNEL_IMPORT_UNARY(sign, sign)
QUERNEL_IMPORT_UNARY(sin, sin)
QUERNEL_IMPORT_UNARY(sinh, sinh)
QUERNEL_IMPORT_UNARY(sqrt, sqrt)
QUERNEL_IMPORT_UNARY(tan, tan)
QUERNEL_IMPORT_UNARY(tanh, tanh)
#undef QUERNEL_IMPORT_UNARY

#define QUERNEL_IMPORT_BINARY(name, op) \
  Status import_##name(NodeImport& n) { return import_binary(n, BinaryOp::k_##op); }
QUERNEL_IMPORT_BINARY(add, add)
QUERNEL_IMPORT_BINARY(and, and)
QUERNEL_IMPORT_BINARY(equal, eq)
QUERNEL_IMPORT_BINARY(greater, gt)
QUERNEL_IMPORT_BINARY(greater_or_equal, ge)
QUERNEL_IMPORT_BINARY(less, lt)
QUERNEL_IMPORT_BINARY(less_or_equal, le)
QUERNEL_IMPORT_BINARY(mul, mul)
QUERNEL_IMPORT_BINARY(or, or)
QUERNEL_IMPORT_BINARY(sub, sub)
QUERNEL_IMPORT_BINARY(xor, xor)
#undef QUERNEL_IMPORT_BINARY

Status import_div(NodeImport& n) { return import_binary(n, division(n.dtype(n.in(0)))); }

Status import_mod(NodeImport& n) {
  bool fmod = n.attr_int("fmod", 0) != 0;
  if (!fmod && n.opset < 28 && is_float(n.dtype(n.in(0))))
    return n.invalid("expected attribute fmod=1 for Mod of floats before opset 28, found fmod=0",
                     "convert the model to opset 28, or set the attribute");
  return import_binary(n, fmod ? BinaryOp::k_fmod : BinaryOp::k_mod);
}

namespace {

// Whether the number, as element i of a constant, is one of `dtype`, too.
bool is_exact(const Tensor& known, int64_t i, DType dtype) {
  double value = element_as_f64(known, i);
  uint64_t stored = 0;
  auto* bytes = reinterpret_cast<uint8_t*>(&stored);
  if (!is_float(known.dtype) && std::abs(value) >= 0x1p53) return known.dtype == dtype;
  if (is_float(dtype)) {
    store_f64(dtype, bytes, 0, value);
  } else {
    if (value != std::trunc(value) || std::abs(value) >= 0x1p53) return false;
    store_i64(dtype, bytes, 0, static_cast<int64_t>(value));
  }
  return element_as_f64({dtype, {}, Bytes::own({bytes, bytes + sizeof stored})}, 0) == value;
}

bool is_exact(const Tensor* known, DType dtype) {
  bool exact = known != nullptr;
  for (int64_t i = 0; exact && i < known->count(); ++i) exact = is_exact(*known, i, dtype);
  return exact;
}

// Integers modulo 2^64; a negative exponent gives 1 / base^-exponent, toward zero.
ValueId integer_power(NodeImport& n, ValueId base, ValueId exponent) {
  if (n.dtype(base) != DType::kU64)
    return n.binary(BinaryOp::k_pow, n.build.cast(base, DType::kI64), n.build.cast(exponent, DType::kI64));
  ValueId power = n.binary(BinaryOp::k_pow, base, n.build.cast(exponent, DType::kU64));
  ValueId inverse = n.build.cast(n.binary(BinaryOp::k_eq, base, 1.0), DType::kU64);
  return n.build.where(n.binary(BinaryOp::k_lt, exponent, 0.0), inverse, power);
}

// A float as the exponent of an integer: where it is whole, the power is that of the same integer, else it is
// computed in f64.
ValueId power_of_integer(NodeImport& n, ValueId base, ValueId exponent) {
  DType dtype = n.dtype(base);
  exponent = n.build.cast(exponent, DType::kF64);
  ValueId is_whole =
      n.binary(BinaryOp::k_and, n.binary(BinaryOp::k_eq, n.unary(UnaryOp::k_floor, exponent), exponent),
               n.binary(BinaryOp::k_lt, n.unary(UnaryOp::k_abs, exponent), 0x1p53));
  ValueId whole = n.build.cast(integer_power(n, base, n.build.cast(exponent, DType::kI64)), dtype);
  ValueId power = n.binary(BinaryOp::k_pow, n.build.cast(base, DType::kF64), exponent);
  // A root that is whole must not be truncated to the integer below: f64 powers are off by up to 4 of their
  // last places.
  ValueId nearest = n.unary(UnaryOp::k_round, power);
  ValueId distance = n.unary(UnaryOp::k_abs, n.binary(BinaryOp::k_sub, power, nearest));
  ValueId near =
      n.binary(BinaryOp::k_le, distance, n.binary(BinaryOp::k_mul, n.unary(UnaryOp::k_abs, power), 0x1p-50));
  power = n.build.where(near, nearest, power);
  return n.build.where(is_whole, whole, n.build.cast(power, dtype));
}

}  // namespace

// The exponent may have another dtype; the result has the base's. No operand is rounded to a narrower dtype.
Status import_pow(NodeImport& n) {
  ValueId base = n.in(0), exponent = n.in(1);
  DType dtype = n.dtype(base), other = n.dtype(exponent);
  if (dtype == other || is_exact(n.constant(exponent), dtype))
    return n.output(n.binary(BinaryOp::k_pow, base, n.build.cast(exponent, dtype)));
  if (is_float(dtype)) {
    bool needs_f64 = other == DType::kF64 || (!is_float(other) && bit_width(other) > 16);
    DType compute = needs_f64 || dtype == DType::kF64 ? DType::kF64 : DType::kF32;
    ValueId power = n.binary(BinaryOp::k_pow, n.build.cast(base, compute), n.build.cast(exponent, compute));
    return n.output(n.build.cast(power, dtype));
  }
  if (is_float(other)) return n.output(power_of_integer(n, base, exponent));
  return n.output(n.build.cast(integer_power(n, base, exponent), dtype));
}

Status import_bit_shift(NodeImport& n) {
  std::string direction = n.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.invalid("attribute 'direction': expected LEFT or RIGHT, found '" + direction + "'");
  return import_binary(n, direction == "LEFT" ? BinaryOp::k_shl : BinaryOp::k_shr);
}

Status import_max(NodeImport& n) { return n.output(fold_operands(n, BinaryOp::k_max)); }
Status import_min(NodeImport& n) { return n.output(fold_operands(n, BinaryOp::k_min)); }

Status import_sum(NodeImport& n) {
  n.compute_wide();
  return n.output(fold_operands(n, BinaryOp::k_add));
}

Status import_mean(NodeImport& n) {
  n.compute_wide();
  ValueId sum = fold_operands(n, BinaryOp::k_add);
  return n.output(n.binary(division(n.dtype(sum)), sum, static_cast<double>(n.input_count())));
}

Status import_is_inf(NodeImport& n) {
  bool positive = n.attr_int("detect_positive", 1) != 0, negative = n.attr_int("detect_negative", 1) != 0;
  ValueId x = n.in(0), result = n.unary(UnaryOp::k_is_inf, x);
  if (!positive && !negative)
    result = n.full(DType::kBool, n.shape(x), 0);
  else if (!positive || !negative)
    result = n.binary(BinaryOp::k_and, result, n.binary(positive ? BinaryOp::k_gt : BinaryOp::k_lt, x, 0.0));
  return n.output(result);
}

Status import_where(NodeImport& n) { return n.output(n.build.where(n.in(0), n.in(1), n.in(2))); }
Status import_identity(NodeImport& n) { return n.output(n.in(0)); }

Status import_cast(NodeImport& n) {
  const onnx::AttributeProto* to = n.attribute("to");
  if (!to || !to->has_i()) return n.invalid("attribute 'to': expected an element type");
  QUERNEL_TRY(DType dtype, dtype_from_onnx(static_cast<int>(to->i()), n.build.location()));
  bool is_f8 = dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
  if (n.attr_int("saturate", 1) == 0 && is_f8)
    return n.refuse("attribute 'saturate': float8 without saturation is not supported");
  n.ignore_attribute("round_mode");  // of float8e8m0, which is refused above
  return n.output(cast(n, n.in(0), dtype));
}

Status import_cast_like(NodeImport& n) {
  DType dtype = n.dtype(n.in(1));
  bool is_f8 = dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
  if (n.attr_int("saturate", 1) == 0 && is_f8)
    return n.refuse("attribute 'saturate': float8 without saturation is not supported");
  n.ignore_attribute("round_mode");
  return n.output(cast(n, n.in(0), dtype));
}

// Inference only: the data pass, and the mask is all true.
Status import_dropout(NodeImport& n) {
  n.ignore_attribute("ratio");
  n.ignore_attribute("seed");
  if (n.has(2)) {
    // Either of the two that says "none" makes the other irrelevant.
    const Tensor* known_ratio = n.has(1) ? n.constant(n.in(1)) : nullptr;
    bool drops_none = known_ratio && known_ratio->count() == 1 && element_as_f64(*known_ratio, 0) == 0;
    if (!drops_none) {
      QUERNEL_TRY(Tensor training, n.constant_in(2, "training_mode"));
      double ratio = 0.5;
      if (training.count() > 0 && element_as_i64(training, 0) != 0) {
        if (n.has(1)) {
          QUERNEL_TRY(ratio, n.float_in(1, "ratio"));
        }
        if (ratio != 0)
          return n.refuse("dropout in training mode is not supported", "export the model for inference");
      }
    }
  }
  ValueId x = n.in(0), mask = kNoValue;
  if (n.wants_output(1)) mask = n.full(n.opset < 10 ? n.dtype(x) : DType::kBool, n.shape(x), 1);
  return n.set_outputs({x, mask});
}

}  // namespace quernel::onnx_import
