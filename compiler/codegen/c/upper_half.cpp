#include "codegen/c/upper_half.h"

namespace quernel::codegen {

using loop::Expr;
using loop::ExprKind;

namespace {

constexpr int64_t kWordBits = 32;

// An i64 whose lanes all are an i32, as one; null if it is something else.
Expr narrowed(const Expr& e) {
  int64_t number = 0;
  if (e->kind == ExprKind::kCast && e->args[0]->type.dtype == DType::kI32) return e->args[0];
  if (e->kind == ExprKind::kBroadcast) {
    Expr scalar = narrowed(e->args[0]);
    return scalar ? loop::broadcast(scalar, e->type.lanes) : nullptr;
  }
  if (!loop::as_const_int(e, &number) || number != static_cast<int32_t>(number)) return nullptr;
  return loop::const_int(DType::kI32, number, e->type.lanes);
}

}  // namespace

std::optional<UpperHalf> upper_half(const loop::ExprNode& e) {
  if (e.type.dtype != DType::kI32 || e.args[0]->type.dtype != DType::kI64) return std::nullopt;
  const loop::ExprNode& shift = *e.args[0];
  if (shift.kind != ExprKind::kBinary || shift.binary != BinaryOp::k_shr) return std::nullopt;
  const loop::ExprNode& product = *shift.args[0];
  int64_t count = 0;
  if (!loop::as_const_int(shift.args[1], &count) || count < kWordBits || count >= 2 * kWordBits ||
      product.kind != ExprKind::kBinary || product.binary != BinaryOp::k_mul)
    return std::nullopt;
  Expr a = narrowed(product.args[0]), b = narrowed(product.args[1]);
  if (!a || !b) return std::nullopt;
  return UpperHalf{a, b, count - kWordBits};
}

}  // namespace quernel::codegen
