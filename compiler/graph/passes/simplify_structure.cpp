#include <algorithm>
#include <cmath>

#include "graph/passes/constant_operand.h"
#include "graph/passes/simplify_rules.h"

namespace quernel {
namespace {

const Node* made_by(const SimplifyMatch& m, size_t operand, OpKind op) {
  const Node* node = m.build.graph().def(m.inputs[operand]);
  return node && node->op == op ? node : nullptr;
}

ValueId uniform(const SimplifyMatch& m, DType dtype, double value) {
  return add_constant(m.build, scalar_tensor(dtype, value), m.type.shape);
}

bool is_rounding(OpKind op) {
  return op == OpKind::k_floor || op == OpKind::k_ceil || op == OpKind::k_round || op == OpKind::k_trunc;
}

// Bits of the integers that a dtype holds exactly, from zero up; the sign apart.
int exact_bits(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 53;
    case DType::kF32:
      return 24;
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    case DType::kF8E4M3:
      return 4;
    case DType::kF8E5M2:
      return 3;
    case DType::kBool:
      return 1;
    default:
      return bit_width(dtype) - (is_signed_integer(dtype) ? 1 : 0);
  }
}

// Whether every value of `from` is one of `to`.
bool holds_all(DType from, DType to) {
  if (from == to) return true;
  if (is_float(from)) {
    if (to == DType::kF64) return true;
    if (to == DType::kF32) return from != DType::kF64;
    bool from_f8 = from == DType::kF8E4M3 || from == DType::kF8E5M2;
    return from_f8 && (to == DType::kF16 || to == DType::kBF16);
  }
  if (to == DType::kBool) return false;
  if (is_signed_integer(from) && is_unsigned_integer(to)) return false;
  // The lowest signed value is a power of two, which floats hold.
  return exact_bits(from) <= exact_bits(to);
}

}  // namespace

ValueId equal_operands(const SimplifyMatch& m) {
  if (m.inputs.size() != 2 || m.inputs[0] != m.inputs[1] || !binary_op(m.op)) return kNoValue;
  bool floats = is_float(m.build.graph().dtype(m.inputs[0]));
  switch (m.op) {
    case OpKind::k_max:
    case OpKind::k_min:
    case OpKind::k_and:
    case OpKind::k_or:
      return m.inputs[0];
    case OpKind::k_sub:
    case OpKind::k_xor:
      return floats ? kNoValue : uniform(m, m.type.dtype, 0);
    case OpKind::k_eq:
    case OpKind::k_le:
    case OpKind::k_ge:
      return floats ? kNoValue : uniform(m, DType::kBool, 1);
    case OpKind::k_ne:
      return floats ? kNoValue : uniform(m, DType::kBool, 0);
    case OpKind::k_lt:
    case OpKind::k_gt:
      return uniform(m, DType::kBool, 0);
    default:
      return kNoValue;
  }
}

ValueId unary_pair(const SimplifyMatch& m) {
  if (!unary_op(m.op)) return kNoValue;
  const Node* inner = m.build.graph().def(m.inputs[0]);
  if (!inner || !unary_op(inner->op)) return kNoValue;
  bool involution = m.op == OpKind::k_neg || m.op == OpKind::k_not || m.op == OpKind::k_bit_not;
  if (involution && inner->op == m.op) return inner->inputs[0];
  if (is_rounding(m.op) && is_rounding(inner->op)) return m.inputs[0];
  bool idempotent = m.op == OpKind::k_abs || m.op == OpKind::k_sign;
  if (idempotent && inner->op == m.op) return m.inputs[0];
  bool has_sign = !is_unsigned_integer(m.type.dtype);
  if (m.op == OpKind::k_abs && inner->op == OpKind::k_neg && has_sign)
    return m.build.add(OpKind::k_abs, {inner->inputs[0]});
  return kNoValue;
}

ValueId negated_comparison(const SimplifyMatch& m) {
  if (m.op != OpKind::k_not) return kNoValue;
  const Node* inner = m.build.graph().def(m.inputs[0]);
  if (!inner || !binary_op(inner->op)) return kNoValue;
  // Comparisons with NaN are false but for ne, so that an ordering has no opposite on floats.
  bool ordered = !is_float(m.build.graph().dtype(inner->inputs[0]));
  std::optional<OpKind> opposite;
  switch (inner->op) {
    case OpKind::k_eq:
      opposite = OpKind::k_ne;
      break;
    case OpKind::k_ne:
      opposite = OpKind::k_eq;
      break;
    case OpKind::k_lt:
      opposite = OpKind::k_ge;
      break;
    case OpKind::k_le:
      opposite = OpKind::k_gt;
      break;
    case OpKind::k_gt:
      opposite = OpKind::k_le;
      break;
    case OpKind::k_ge:
      opposite = OpKind::k_lt;
      break;
    default:
      return kNoValue;
  }
  bool is_equality = inner->op == OpKind::k_eq || inner->op == OpKind::k_ne;
  std::vector<ValueId> operands = inner->inputs;
  return ordered || is_equality ? m.build.add(*opposite, std::move(operands)) : kNoValue;
}

ValueId known_condition(const SimplifyMatch& m) {
  if (m.op != OpKind::k_where) return kNoValue;
  if (m.inputs[1] == m.inputs[2]) return m.inputs[1];
  if (std::optional<Tensor> c = uniform_operand(m.build.graph(), m.inputs[0]))
    return element_as_i64(*c, 0) ? m.inputs[1] : m.inputs[2];
  const Node* inverted = made_by(m, 0, OpKind::k_not);
  if (!inverted) return kNoValue;
  ValueId condition = inverted->inputs[0];
  return m.build.add(OpKind::k_where, {condition, m.inputs[2], m.inputs[1]});
}

ValueId redundant_cast(const SimplifyMatch& m) {
  if (m.op != OpKind::k_cast) return kNoValue;
  const Graph& graph = m.build.graph();
  DType to = m.type.dtype, middle = graph.dtype(m.inputs[0]);
  if (middle == to) return m.inputs[0];
  const Node* inner = made_by(m, 0, OpKind::k_cast);
  if (!inner) return kNoValue;
  ValueId x = inner->inputs[0];
  DType from = graph.dtype(x);
  if (!holds_all(from, middle)) return kNoValue;
  if (from == to) return x;
  // Out of range, an integer wraps where a float saturates.
  bool differs =
      !is_float(from) && is_float(middle) && !is_float(to) && to != DType::kBool && !holds_all(from, to);
  return differs ? kNoValue : m.build.cast(x, to);
}

ValueId reduce_of_one(const SimplifyMatch& m) {
  if (!is_reduce(m.op)) return kNoValue;
  const Graph& graph = m.build.graph();
  const Shape& shape = graph.shape(m.inputs[0]);
  for (int64_t axis : m.attributes.ints)
    if (!(shape[axis] == Dim(1))) return kNoValue;
  if (m.op == OpKind::k_reduce_argmax || m.op == OpKind::k_reduce_argmin) return uniform(m, m.type.dtype, 0);
  bool accumulates = m.op == OpKind::k_reduce_sum || m.op == OpKind::k_reduce_prod;
  if (accumulates && !holds_all(m.type.dtype, m.attributes.accumulator)) return kNoValue;
  return m.build.reshape(m.inputs[0], m.type.shape);
}

// Operands that are expands (or known, and as small) are computed on before they are expanded.
ValueId expand_after(const SimplifyMatch& m) {
  if (!is_elementwise(m.op)) return kNoValue;
  const Graph& graph = m.build.graph();
  Shape small(m.type.shape.size(), Dim(1));
  bool any_unknown = false;
  for (size_t i = 0; i < m.inputs.size(); ++i) {
    const Node* expand = made_by(m, i, OpKind::k_expand);
    any_unknown |= expand && !graph.constant(expand->inputs[0]);
    const Shape& source = expand ? graph.shape(expand->inputs[0]) : graph.shape(m.inputs[i]);
    for (size_t d = 0; d < small.size(); ++d)
      if (!(source[d] == Dim(1))) small[d] = m.type.shape[d];
  }
  if (!any_unknown || small == m.type.shape) return kNoValue;
  std::vector<ValueId> operands;
  for (size_t i = 0; i < m.inputs.size(); ++i) {
    const Node* expand = made_by(m, i, OpKind::k_expand);
    operands.push_back(m.build.broadcast_to(expand ? expand->inputs[0] : m.inputs[i], small));
  }
  Attributes attributes;
  attributes.shape = m.type.shape;
  return m.build.add(OpKind::k_expand, {m.build.add(m.op, std::move(operands), m.attributes)},
                     std::move(attributes));
}

}  // namespace quernel
