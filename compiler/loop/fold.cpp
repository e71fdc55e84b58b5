#include "loop/fold.h"

#include "loop/evaluate_scalar.h"

namespace quernel::loop {
namespace {

bool is_const(const Expr& e) { return e->kind == ExprKind::kConst; }
bool is_ramp(const Expr& e) { return e->kind == ExprKind::kRamp; }
bool is_index(const Expr& e) { return e->type.dtype == DType::kI64; }

bool commutes(BinaryOp op) {
  switch (op) {
    case BinaryOp::k_add:
    case BinaryOp::k_mul:
    case BinaryOp::k_max:
    case BinaryOp::k_min:
    case BinaryOp::k_and:
    case BinaryOp::k_or:
    case BinaryOp::k_xor:
      return true;
    default:
      return false;
  }
}

bool is_division(BinaryOp op) {
  return op == BinaryOp::k_idiv || op == BinaryOp::k_fdiv || op == BinaryOp::k_div;
}
bool is_remainder(BinaryOp op) { return op == BinaryOp::k_mod || op == BinaryOp::k_fmod; }

// x op constant, where x is itself y op constant.
Expr merge_constants(BinaryOp op, const Expr& a, const Expr& b) {
  if (a->kind != ExprKind::kBinary || a->binary != op || !is_const(a->args[1])) return nullptr;
  if (op != BinaryOp::k_add && op != BinaryOp::k_mul && op != BinaryOp::k_max && op != BinaryOp::k_min)
    return nullptr;
  return binary(op, a->args[0], binary(op, a->args[1], b));
}

bool has_const_addend(const Expr& e) {
  return e->kind == ExprKind::kBinary && e->binary == BinaryOp::k_add && is_const(e->args[1]);
}

// Constants drift to the right end of a sum, so that they meet: (x + c) + y -> (x + y) + c.
Expr hoist_addend(const Expr& a, const Expr& b) {
  if (has_const_addend(a) && !is_const(b)) return binary(BinaryOp::k_add, a->args[0] + b, a->args[1]);
  if (has_const_addend(b)) return binary(BinaryOp::k_add, a + b->args[0], b->args[1]);
  return nullptr;
}

Expr fold_ramp(BinaryOp op, const Expr& a, const Expr& b) {
  int lanes = a->type.lanes;
  int64_t c = 0;
  if (is_ramp(a) && is_ramp(b)) {
    if (op == BinaryOp::k_add) return ramp(a->args[0] + b->args[0], a->stride + b->stride, lanes);
    if (op == BinaryOp::k_sub) return ramp(a->args[0] - b->args[0], a->stride - b->stride, lanes);
    return nullptr;
  }
  if (is_ramp(b)) {
    Expr x = uniform_value(a);
    if (!x) return nullptr;
    if (op == BinaryOp::k_sub) return ramp(x - b->args[0], -b->stride, lanes);
    return commutes(op) ? fold_ramp(op, b, a) : nullptr;
  }
  Expr x = uniform_value(b);
  if (!is_ramp(a) || !x) return nullptr;
  if (op == BinaryOp::k_add) return ramp(a->args[0] + x, a->stride, lanes);
  if (op == BinaryOp::k_sub) return ramp(a->args[0] - x, a->stride, lanes);
  if (!as_const_int(x, &c)) return nullptr;
  if (op == BinaryOp::k_mul) return ramp(a->args[0] * x, a->stride * c, lanes);
  int64_t base = 0;
  if (is_division(op) && c > 0 && as_const_int(a->args[0], &base) && base % c == 0 && a->stride % c == 0)
    return ramp(const_index(base / c), a->stride / c, lanes);
  return nullptr;
}

Expr fold_bool(BinaryOp op, const Expr& a, const Expr& b) {
  bool known = is_const_bool(b, true);
  if (!known && !is_const_bool(b, false)) return same_leaf(a, b) && op != BinaryOp::k_xor ? a : nullptr;
  if (op == BinaryOp::k_and) return known ? a : b;
  if (op == BinaryOp::k_or) return known ? b : a;
  if (op == BinaryOp::k_xor) return known ? unary(UnaryOp::k_not, a) : a;
  return nullptr;
}

Expr fold_integer_identity(BinaryOp op, const Expr& a, const Expr& b) {
  Type type = a->type;
  int64_t c = 0;
  if (is_const(a) && as_const_int(a, &c) && c == 0 && (is_division(op) || is_remainder(op))) return a;
  if (is_const(b) && as_const_int(b, &c)) {
    if (op == BinaryOp::k_sub) return binary(BinaryOp::k_add, a, unary(UnaryOp::k_neg, b));
    if (c == 0 && (op == BinaryOp::k_add || op == BinaryOp::k_or || op == BinaryOp::k_xor)) return a;
    if (c == 0 && (op == BinaryOp::k_mul || op == BinaryOp::k_and)) return b;
    if (c == 0 && (op == BinaryOp::k_shl || op == BinaryOp::k_shr)) return a;
    if (c == 1 && (op == BinaryOp::k_mul || is_division(op))) return a;
    if (c == 1 && is_remainder(op)) return const_int(type.dtype, 0, type.lanes);
    if (Expr merged = merge_constants(op, a, b)) return merged;
  }
  if (op == BinaryOp::k_add) return hoist_addend(a, b);
  if (!same_leaf(a, b)) return nullptr;
  if (op == BinaryOp::k_sub || op == BinaryOp::k_xor) return const_int(type.dtype, 0, type.lanes);
  if (op == BinaryOp::k_max || op == BinaryOp::k_min || op == BinaryOp::k_and || op == BinaryOp::k_or)
    return a;
  return nullptr;
}

}  // namespace

Expr uniform_value(const Expr& e) {
  if (e->type.lanes == 1) return e;
  if (e->kind == ExprKind::kBroadcast) return e->args[0];
  if (e->kind == ExprKind::kConst) return const_bits(e->type.with_lanes(1), e->bits);
  return nullptr;
}

bool same_leaf(const Expr& a, const Expr& b) {
  if (a == b) return true;
  if (a->kind != b->kind || a->type != b->type) return false;
  switch (a->kind) {
    case ExprKind::kConst:
      return a->bits == b->bits;
    case ExprKind::kVar:
      return a->var == b->var;
    case ExprKind::kSymbol:
      return a->symbol == b->symbol;
    case ExprKind::kBroadcast:
      return same_leaf(a->args[0], b->args[0]);
    case ExprKind::kRamp:
      return a->stride == b->stride && same_leaf(a->args[0], b->args[0]);
    default:
      return false;
  }
}

bool is_const_bool(const Expr& e, bool value) {
  return is_const(e) && e->type.dtype == DType::kBool && (e->bits != 0) == value;
}

Expr fold_binary(BinaryOp op, const Expr& a, const Expr& b) {
  DType dtype = a->type.dtype;
  int lanes = a->type.lanes;
  if (is_float(dtype) || is_storage_only(dtype)) return nullptr;
  if (is_const(a) && is_const(b)) {
    DType result = is_comparison(op) ? DType::kBool : dtype;
    return const_bits({result, lanes}, evaluate_binary(op, dtype, a->bits, b->bits));
  }
  if (is_const(a) && commutes(op)) return binary(op, b, a);
  if (is_comparison(op)) {
    if (!same_leaf(a, b)) return nullptr;
    return const_int(DType::kBool, op == BinaryOp::k_eq || op == BinaryOp::k_le || op == BinaryOp::k_ge,
                     lanes);
  }
  if (dtype == DType::kBool) return fold_bool(op, a, b);
  if (is_index(a) && lanes > 1)
    if (Expr folded = fold_ramp(op, a, b)) return folded;
  return fold_integer_identity(op, a, b);
}

Expr fold_unary(UnaryOp op, const Expr& x) {
  DType dtype = x->type.dtype;
  if (is_float(dtype) || is_storage_only(dtype)) return nullptr;
  if (is_const(x)) {
    DType result = is_predicate(op) ? DType::kBool : dtype;
    return const_bits({result, x->type.lanes}, evaluate_unary(op, dtype, x->bits));
  }
  if (is_predicate(op)) return const_int(DType::kBool, 0, x->type.lanes);
  bool involution = op == UnaryOp::k_not || op == UnaryOp::k_neg || op == UnaryOp::k_bit_not;
  if (involution && x->kind == ExprKind::kUnary && x->unary == op) return x->args[0];
  if (op == UnaryOp::k_neg && is_index(x)) return const_int(dtype, 0, x->type.lanes) - x;
  if (op != UnaryOp::k_not || dtype != DType::kBool || x->kind != ExprKind::kBinary ||
      !is_comparison(x->binary) || is_float(x->args[0]->type.dtype))  // with NaN, not (a < b) is not a >= b
    return nullptr;
  switch (x->binary) {
    case BinaryOp::k_eq:
      return binary(BinaryOp::k_ne, x->args[0], x->args[1]);
    case BinaryOp::k_ne:
      return binary(BinaryOp::k_eq, x->args[0], x->args[1]);
    case BinaryOp::k_lt:
      return binary(BinaryOp::k_ge, x->args[0], x->args[1]);
    case BinaryOp::k_le:
      return binary(BinaryOp::k_gt, x->args[0], x->args[1]);
    case BinaryOp::k_gt:
      return binary(BinaryOp::k_le, x->args[0], x->args[1]);
    default:
      return binary(BinaryOp::k_lt, x->args[0], x->args[1]);
  }
}

}  // namespace quernel::loop
