#include <algorithm>
#include <cmath>
#include <map>

#include "random_graph/generator.h"

namespace quernel::random_graph_parts {

namespace {

// Ops whose argument is brought into [lo, hi] first, and the bound of their results.
struct Domain {
  UnaryOp op;
  double lo, hi, bound;
};
const std::vector<Domain> kDomains{
    {UnaryOp::k_sqrt, 0.25, 8, 3},        {UnaryOp::k_rsqrt, 0.25, 8, 2},
    {UnaryOp::k_recip, 0.25, 8, 4},       {UnaryOp::k_exp, -4, 4, 55},
    {UnaryOp::k_exp2, -4, 4, 16},         {UnaryOp::k_log, 0.25, 8, 3},
    {UnaryOp::k_log2, 0.25, 8, 3},        {UnaryOp::k_log1p, -0.5, 8, 3},
    {UnaryOp::k_expm1, -4, 4, 55},        {UnaryOp::k_sin, -6, 6, 1},
    {UnaryOp::k_cos, -6, 6, 1},           {UnaryOp::k_tan, -1, 1, 2},
    {UnaryOp::k_asin, -0.875, 0.875, 2},  {UnaryOp::k_acos, -0.875, 0.875, 3},
    {UnaryOp::k_atan, -8, 8, 2},          {UnaryOp::k_sinh, -4, 4, 28},
    {UnaryOp::k_cosh, -4, 4, 28},         {UnaryOp::k_tanh, -8, 8, 1},
    {UnaryOp::k_asinh, -8, 8, 3},         {UnaryOp::k_acosh, 1.25, 8, 3},
    {UnaryOp::k_atanh, -0.875, 0.875, 2}, {UnaryOp::k_erf, -4, 4, 1},
};

}  // namespace

ValueId Generator::random_inexact_unary(ValueId x) {
  const Domain& domain = random.pick(kDomains);
  ValueId limited = clamp(x, domain.lo, domain.hi);
  return keep(build.unary(domain.op, limited), {domain.bound, kInexact});
}

ValueId Generator::random_unary() {
  ValueId x = operand();
  DType dtype = graph.dtype(x);
  Facts f = facts(x);
  if (dtype == DType::kBool) return keep(build.unary(UnaryOp::k_not, x), {});
  if (!is_float(dtype)) {
    static const std::vector<UnaryOp> kIntegers{UnaryOp::k_neg, UnaryOp::k_abs, UnaryOp::k_sign,
                                                UnaryOp::k_bit_not};
    return keep(build.unary(random.pick(kIntegers), x), {});
  }
  if (options.transcendentals && random.chance(50)) return random_inexact_unary(x);
  static const std::vector<UnaryOp> kSmooth{UnaryOp::k_neg, UnaryOp::k_abs};
  static const std::vector<UnaryOp> kSteps{UnaryOp::k_sign, UnaryOp::k_floor, UnaryOp::k_ceil,
                                           UnaryOp::k_round, UnaryOp::k_trunc};
  if (!exact(x) || random.chance(40)) return keep(build.unary(random.pick(kSmooth), x), f);
  if (random.chance(10))
    return keep(build.unary(random.chance(50) ? UnaryOp::k_is_nan : UnaryOp::k_is_inf, x), {});
  return keep(build.unary(random.pick(kSteps), x), facts_of(dtype, f.bound + 1, 0));
}

ValueId Generator::random_binary() {
  ValueId x = operand();
  if (random.chance(15)) return random_compare(x);
  DType dtype = graph.dtype(x);
  if (dtype == DType::kBool) {
    static const std::vector<BinaryOp> kLogical{BinaryOp::k_and, BinaryOp::k_or, BinaryOp::k_xor,
                                                BinaryOp::k_max, BinaryOp::k_min};
    return keep(build.binary(random.pick(kLogical), x, partner(x)), {});
  }
  return is_float(dtype) ? random_binary_of_floats(x) : random_binary_of_integers(x);
}

ValueId Generator::random_compare(ValueId x) {
  ValueId y = partner(x);
  if (!exact(x) || !exact(y)) return kNoValue;
  auto op = static_cast<BinaryOp>(static_cast<int>(BinaryOp::k_eq) + static_cast<int>(random.below(6)));
  return keep(build.binary(op, x, y), {});
}

ValueId Generator::random_binary_of_floats(ValueId x) {
  ValueId y = partner(x);
  DType dtype = graph.dtype(x);
  Facts a = facts(x), b = facts(y);
  bool both = exact(x) && exact(y);
  int bits = both ? std::max(a.fraction_bits, b.fraction_bits) : kInexact;
  if (options.transcendentals && random.chance(20)) {
    if (random.chance(30)) {
      ValueId base = clamp(x, 0.25, 4), exponent = clamp(y, -2, 2);
      return keep(build.binary(BinaryOp::k_pow, base, exponent), {16, kInexact});
    }
    Facts positive = facts_of(dtype, b.bound + 0.5, both ? std::max(b.fraction_bits, 1) : kInexact);
    ValueId divisor = build.binary(BinaryOp::k_add, build.unary(UnaryOp::k_abs, y), 0.5);
    return keep(build.binary(BinaryOp::k_div, x, keep(divisor, positive)), {a.bound * 2, kInexact});
  }
  if (both && random.chance(8)) {  // remainders jump
    BinaryOp op = random.chance(50) ? BinaryOp::k_mod : BinaryOp::k_fmod;
    Facts positive = facts_of(dtype, b.bound + 1, b.fraction_bits);
    if (positive.fraction_bits == kInexact) return kNoValue;
    ValueId divisor = keep(build.binary(BinaryOp::k_add, build.unary(UnaryOp::k_abs, y), 1.0), positive);
    return keep(build.binary(op, x, divisor), facts_of(dtype, b.bound + 1, bits));
  }
  switch (random.below(7)) {
    case 0:
    case 1:
      return keep(build.binary(BinaryOp::k_add, x, y), facts_of(dtype, a.bound + b.bound, bits));
    case 2:
      return keep(build.binary(BinaryOp::k_sub, x, y), facts_of(dtype, a.bound + b.bound, bits));
    case 3:
    case 4:
      return keep(build.binary(BinaryOp::k_mul, x, y),
                  facts_of(dtype, a.bound * b.bound, both ? a.fraction_bits + b.fraction_bits : kInexact));
    case 5:
      return keep(build.binary(BinaryOp::k_max, x, y), facts_of(dtype, std::max(a.bound, b.bound), bits));
    default:
      return keep(build.binary(BinaryOp::k_min, x, y), facts_of(dtype, std::max(a.bound, b.bound), bits));
  }
}

ValueId Generator::random_binary_of_integers(ValueId x) {
  static const std::vector<BinaryOp> kOps{
      BinaryOp::k_add, BinaryOp::k_sub,  BinaryOp::k_mul, BinaryOp::k_idiv, BinaryOp::k_fdiv,
      BinaryOp::k_mod, BinaryOp::k_fmod, BinaryOp::k_max, BinaryOp::k_min,  BinaryOp::k_and,
      BinaryOp::k_or,  BinaryOp::k_xor,  BinaryOp::k_shl, BinaryOp::k_shr,  BinaryOp::k_pow};
  BinaryOp op = random.pick(kOps);
  if (graph.dtype(x) == DType::kU64 && random.chance(25)) op = BinaryOp::k_threefry2x32;
  ValueId y = partner(x);
  if (op == BinaryOp::k_pow) y = clamp(y, 0, 3);
  return keep(build.binary(op, x, y), {});
}

ValueId Generator::random_ternary() {
  ValueId x = operand();
  DType dtype = graph.dtype(x);
  ValueId y = partner(x);
  Facts a = facts(x), b = facts(y);
  int64_t choice = random.below(3);
  if (choice == 0 || dtype == DType::kBool) {
    ValueId condition =
        operand_if([&](ValueId v) { return graph.dtype(v) == DType::kBool && broadcasts_to(v, x); });
    condition = condition == kNoValue ? source(DType::kBool, static_dims(graph.shape(x))) : condition;
    int bits = exact(x) && exact(y) ? std::max(a.fraction_bits, b.fraction_bits) : kInexact;
    return keep(build.where(broadcast(condition, x), x, y),
                facts_of(dtype, std::max(a.bound, b.bound), bits));
  }
  if (choice == 1) return clamp(x, -1, 1.5);
  ValueId z = partner(x);
  bool all = exact(x) && exact(y) && exact(z);
  int bits = all ? std::max(a.fraction_bits + b.fraction_bits, facts(z).fraction_bits) : kInexact;
  return keep(build.add(OpKind::k_mulacc, {x, y, z}),
              facts_of(dtype, a.bound * b.bound + facts(z).bound, bits));
}

ValueId Generator::random_cast() {
  ValueId x = any_operand();
  DType from = graph.dtype(x), to = random_dtype();
  if (options.storage_dtypes && random.chance(25)) to = random_storage_dtype();
  if (options.bitcasts && random.chance(20) && exact(x)) return random_bitcast(x, to);
  bool to_narrow = to == DType::kF8E4M3 || to == DType::kF8E5M2;
  // A difference in the last bit may become one of an eighth.
  if (to_narrow && is_float(from) && !exact(x)) return kNoValue;
  bool wide_integer = !is_float(from) && from != DType::kBool && !is_packed(from);
  if (is_float(to) && wide_integer) x = clamp(x, -100, 100);
  if (to_narrow && is_float(from) && facts(x).bound > 100) x = clamp(x, -100, 100);
  Facts f = facts(x);
  if (is_float(from) && !is_float(to)) return exact(x) ? keep(build.cast(x, to), {}) : kNoValue;
  double bound = is_float(from) ? f.bound : 100;
  if (!is_float(to)) return keep(build.cast(x, to), {});
  return keep(build.cast(x, to), facts_of(to, bound, exact(x) ? f.fraction_bits : kInexact));
}

// Not into floats, where bits may be NaNs and huge values; but a float's own bits become that float again.
ValueId Generator::random_bitcast(ValueId x, DType to) {
  DType from = graph.dtype(x);
  auto bits_as = [&](ValueId v, DType dtype) {
    Attributes attributes;
    attributes.dtype = dtype;
    return build.add(OpKind::k_bitcast, {v}, std::move(attributes));
  };
  if (is_float(from) && random.chance(30)) {
    static const std::map<int, std::vector<DType>> kSameWidth{{8, {DType::kI8, DType::kU8}},
                                                              {16, {DType::kI16, DType::kU16}},
                                                              {32, {DType::kI32, DType::kU32}},
                                                              {64, {DType::kI64, DType::kU64}}};
    Facts f = facts(x);
    ValueId bits = keep(bits_as(x, random.pick(kSameWidth.at(bit_width(from)))), {});
    return keep(bits_as(bits, from), f);
  }
  if (is_float(to) || to == DType::kBool || from == DType::kBool || graph.rank(x) == 0) return kNoValue;
  int ratio = bit_width(to) / std::min(bit_width(from), bit_width(to));
  if (graph.shape(x).back().value() % ratio != 0) return kNoValue;
  if (is_float(from)) {  // the sign of a zero is anyone's choice: max(-0, 0)
    if (from >= DType::kI4) return kNoValue;
    const Shape shape = graph.shape(x);
    ValueId zero = build.full(from, shape, 0);
    x = build.where(build.binary(BinaryOp::k_eq, x, zero), zero, x);
  }
  return keep(bits_as(x, to), {});
}

}  // namespace quernel::random_graph_parts
