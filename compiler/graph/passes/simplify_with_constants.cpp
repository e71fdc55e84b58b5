#include <cmath>
#include <cstring>
#include <limits>

#include "graph/passes/constant_operand.h"
#include "graph/passes/simplify_rules.h"

namespace quernel {
namespace {

bool same_tensor(const Tensor& a, const Tensor& b) {
  return a.dims == b.dims && a.bytes.size() == b.bytes.size() &&
         std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
}

bool is_known(const Graph& graph, ValueId v) { return constant_operand(graph, v).has_value(); }

// The operation with its operands exchanged; none for those that have no such form.
std::optional<OpKind> exchanged(OpKind op) {
  switch (op) {
    case OpKind::k_add:
    case OpKind::k_mul:
    case OpKind::k_max:
    case OpKind::k_min:
    case OpKind::k_and:
    case OpKind::k_or:
    case OpKind::k_xor:
    case OpKind::k_eq:
    case OpKind::k_ne:
      return op;
    case OpKind::k_lt:
      return OpKind::k_gt;
    case OpKind::k_le:
      return OpKind::k_ge;
    case OpKind::k_gt:
      return OpKind::k_lt;
    case OpKind::k_ge:
      return OpKind::k_le;
    default:
      return std::nullopt;
  }
}

bool is_zero(const Tensor& scalar) { return element_as_f64(scalar, 0) == 0; }
bool is_one(const Tensor& scalar) { return element_as_f64(scalar, 0) == 1; }
bool is_negative_zero(const Tensor& s) { return is_zero(s) && std::signbit(element_as_f64(s, 0)); }

int64_t lowest_integer(DType dtype) {
  return is_signed_integer(dtype) ? INT64_MIN >> (64 - bit_width(dtype)) : 0;
}
int64_t highest_integer(DType dtype) {  // as element_as_i64 gives it
  if (dtype == DType::kBool) return 1;
  return static_cast<int64_t>(~uint64_t{0} >> (64 - bit_width(dtype) + (is_signed_integer(dtype) ? 1 : 0)));
}
bool is_lowest(const Tensor& s) {
  return is_float(s.dtype) ? element_as_f64(s, 0) == -std::numeric_limits<double>::infinity()
                           : element_as_i64(s, 0) == lowest_integer(s.dtype);
}
bool is_highest(const Tensor& s) {
  return is_float(s.dtype) ? element_as_f64(s, 0) == std::numeric_limits<double>::infinity()
                           : element_as_i64(s, 0) == highest_integer(s.dtype);
}
bool is_all_ones(const Tensor& s) {  // the bits of an integer, or true
  return element_as_i64(s, 0) == (is_signed_integer(s.dtype) ? -1 : highest_integer(s.dtype));
}

bool is_neutral(OpKind op, const Tensor& c) {
  bool floats = is_float(c.dtype);
  switch (op) {
    case OpKind::k_add:
      return floats ? is_negative_zero(c) : is_zero(c);  // -0 + 0 is 0
    case OpKind::k_sub:
      return is_zero(c) && !is_negative_zero(c);
    case OpKind::k_mul:
    case OpKind::k_div:
    case OpKind::k_idiv:
    case OpKind::k_fdiv:
    case OpKind::k_pow:
      return is_one(c);
    case OpKind::k_or:
    case OpKind::k_xor:
    case OpKind::k_shl:
    case OpKind::k_shr:
      return is_zero(c);
    case OpKind::k_and:
      return is_all_ones(c);
    case OpKind::k_max:
      return is_lowest(c);
    case OpKind::k_min:
      return is_highest(c);
    default:
      return false;
  }
}

// Not for floats: a NaN stays one.
bool is_absorbing(OpKind op, const Tensor& c) {
  if (is_float(c.dtype)) return false;
  switch (op) {
    case OpKind::k_mul:
    case OpKind::k_and:
      return is_zero(c);
    case OpKind::k_or:
      return is_all_ones(c);
    case OpKind::k_max:
      return is_highest(c);
    case OpKind::k_min:
      return is_lowest(c);
    default:
      return false;
  }
}

// The node that makes operand 0 if it is `op` with a known right operand.
const Node* inner_with_constant(const SimplifyMatch& m, OpKind op) {
  const Node* inner = m.build.graph().def(m.inputs[0]);
  return inner && inner->op == op && is_known(m.build.graph(), inner->inputs[1]) ? inner : nullptr;
}

}  // namespace

ValueId constant_to_the_right(const SimplifyMatch& m) {
  std::optional<OpKind> op = exchanged(m.op);
  const Graph& graph = m.build.graph();
  if (!op || !is_known(graph, m.inputs[0]) || is_known(graph, m.inputs[1])) return kNoValue;
  return m.build.add(*op, {m.inputs[1], m.inputs[0]});
}

ValueId neutral_operand(const SimplifyMatch& m) {
  if (!binary_op(m.op)) return kNoValue;
  std::optional<Tensor> c = uniform_operand(m.build.graph(), m.inputs[1]);
  return c && is_neutral(m.op, *c) ? m.inputs[0] : kNoValue;
}

ValueId absorbing_operand(const SimplifyMatch& m) {
  if (!binary_op(m.op)) return kNoValue;
  std::optional<Tensor> c = uniform_operand(m.build.graph(), m.inputs[1]);
  return c && is_absorbing(m.op, *c) ? m.inputs[1] : kNoValue;
}

ValueId subtract_constant(const SimplifyMatch& m) {
  if (m.op != OpKind::k_sub || is_known(m.build.graph(), m.inputs[0])) return kNoValue;
  std::optional<Tensor> c = constant_operand(m.build.graph(), m.inputs[1]);
  if (!c) return kNoValue;
  Expected<Tensor> negated = evaluate_node(OpKind::k_neg, {*c});
  if (!negated) return m.build.fail(negated.take_errors().front());
  return m.build.add(OpKind::k_add, {m.inputs[0], add_constant(m.build, std::move(*negated), m.type.shape)});
}

ValueId divide_by_power_of_two(const SimplifyMatch& m) {
  if (m.op != OpKind::k_div || is_known(m.build.graph(), m.inputs[0])) return kNoValue;
  std::optional<Tensor> c = constant_operand(m.build.graph(), m.inputs[1]);
  if (!c) return kNoValue;
  // The reciprocal must be a normal number of the narrowest exponent range that the dtype could have.
  int range = c->dtype == DType::kF16 ? 14 : 126;
  for (int64_t i = 0; i < c->count(); ++i) {
    int exponent = 0;
    double fraction = std::frexp(element_as_f64(*c, i), &exponent);
    if (std::fabs(fraction) != 0.5 || std::abs(exponent - 1) > range) return kNoValue;
  }
  Expected<Tensor> factors = evaluate_node(OpKind::k_recip, {*c});
  if (!factors) return m.build.fail(factors.take_errors().front());
  return m.build.add(OpKind::k_mul, {m.inputs[0], add_constant(m.build, std::move(*factors), m.type.shape)});
}

ValueId multiply_by_minus_one(const SimplifyMatch& m) {
  if (m.op != OpKind::k_mul || is_unsigned_integer(m.type.dtype)) return kNoValue;
  std::optional<Tensor> c = uniform_operand(m.build.graph(), m.inputs[1]);
  return c && element_as_f64(*c, 0) == -1 ? m.build.add(OpKind::k_neg, {m.inputs[0]}) : kNoValue;
}

ValueId join_constants(const SimplifyMatch& m) {
  bool exact = m.op == OpKind::k_max || m.op == OpKind::k_min || m.op == OpKind::k_and ||
               m.op == OpKind::k_or || m.op == OpKind::k_xor ||
               ((m.op == OpKind::k_add || m.op == OpKind::k_mul) && is_integer(m.type.dtype));
  if (!exact) return kNoValue;
  std::optional<Tensor> c = constant_operand(m.build.graph(), m.inputs[1]);
  const Node* inner = inner_with_constant(m, m.op);
  if (!c || !inner) return kNoValue;
  ValueId x = inner->inputs[0];
  if (is_known(m.build.graph(), x)) return kNoValue;
  Tensor before = *constant_operand(m.build.graph(), inner->inputs[1]);
  Expected<Tensor> joined = evaluate_node(m.op, {before, *c});
  if (!joined) return m.build.fail(joined.take_errors().front());
  if (same_tensor(before, *joined)) return m.inputs[0];
  return m.build.add(m.op, {x, add_constant(m.build, std::move(*joined), m.type.shape)});
}

ValueId constant_power(const SimplifyMatch& m) {
  if (m.op != OpKind::k_pow) return kNoValue;
  std::optional<Tensor> c = uniform_operand(m.build.graph(), m.inputs[1]);
  if (!c) return kNoValue;
  ValueId x = m.inputs[0];
  double exponent = element_as_f64(*c, 0);
  if (exponent == 0) return add_constant(m.build, scalar_tensor(m.type.dtype, 1), m.type.shape);
  if (exponent == 2) return m.build.add(OpKind::k_mul, {x, x});
  if (!is_float(m.type.dtype)) return kNoValue;
  if (exponent == -1) return m.build.add(OpKind::k_recip, {x});
  // pow(-0, 0.5) is 0 and pow(-inf, 0.5) is inf, unlike the square roots.
  if (std::fabs(exponent) != 0.5 || !known_non_negative(m.build.graph(), x)) return kNoValue;
  return m.build.add(exponent > 0 ? OpKind::k_sqrt : OpKind::k_rsqrt, {x});
}

ValueId reciprocal(const SimplifyMatch& m) {
  if (m.op != OpKind::k_div) return kNoValue;
  std::optional<Tensor> c = uniform_operand(m.build.graph(), m.inputs[0]);
  return c && is_one(*c) ? m.build.add(OpKind::k_recip, {m.inputs[1]}) : kNoValue;
}

ValueId infinite_clamp(const SimplifyMatch& m) {
  if (m.op != OpKind::k_clamp) return kNoValue;
  std::optional<Tensor> lo = uniform_operand(m.build.graph(), m.inputs[1]),
                        hi = uniform_operand(m.build.graph(), m.inputs[2]);
  return lo && hi && is_lowest(*lo) && is_highest(*hi) ? m.inputs[0] : kNoValue;
}

}  // namespace quernel
