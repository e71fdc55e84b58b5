// Expressions: constants, index vectors, dispatch by dtype, selects and lane reductions.
#include <llvm/IR/IntrinsicInst.h>

#include "codegen/llvm/kernel_emitter.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;

llvm::Type* KernelEmitter::element_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return builder_.getFloatTy();
    case DType::kF64:
      return builder_.getDoubleTy();
    case DType::kBool:
      return builder_.getInt1Ty();
    default:
      return builder_.getIntNTy(static_cast<unsigned>(bit_width(dtype)));
  }
}

llvm::Type* KernelEmitter::memory_type(DType dtype) {
  return dtype == DType::kBool ? builder_.getInt8Ty() : element_type(dtype);
}

llvm::Type* KernelEmitter::value_type(loop::Type type) {
  llvm::Type* element = element_type(type.dtype);
  return type.lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(type.lanes));
}

int KernelEmitter::lanes_of(Value* v) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(v->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

KernelEmitter::Value* KernelEmitter::splat(Value* scalar, int lanes) {
  return lanes == 1 ? scalar : builder_.CreateVectorSplat(static_cast<unsigned>(lanes), scalar);
}

llvm::Constant* KernelEmitter::int_constant(llvm::Type* type, uint64_t value) {
  unsigned width = type->getScalarSizeInBits();
  return llvm::ConstantInt::get(type, llvm::APInt(width, value, false, true));
}

KernelEmitter::Value* KernelEmitter::any_lane(Value* mask) { return builder_.CreateOrReduce(mask); }
KernelEmitter::Value* KernelEmitter::all_lanes(Value* mask) { return builder_.CreateAndReduce(mask); }

KernelEmitter::Value* KernelEmitter::expr(const loop::Expr& e) {
  auto [slot, is_new] = emitted_.try_emplace(e.get(), nullptr);
  if (!is_new) return slot->second;
  Value* value = emit_expr(*e);
  emitted_[e.get()] = value;  // the recursion may have rehashed the map
  return value;
}

KernelEmitter::Value* KernelEmitter::emit_expr(const loop::ExprNode& e) {
  switch (e.kind) {
    case ExprKind::kConst:
      return constant(e);
    case ExprKind::kVar: {
      auto it = variables_.find(e.var.get());
      QUERNEL_ASSERT(it != variables_.end());
      return it->second;
    }
    case ExprKind::kSymbol:
      QUERNEL_ASSERT(e.symbol >= 0 && static_cast<size_t>(e.symbol) < symbols_.size());
      return symbols_[static_cast<size_t>(e.symbol)];
    case ExprKind::kLoad:
      return load(e);
    case ExprKind::kUnary:
      return unary(e);
    case ExprKind::kBinary:
      if (Value* sum = sum_of_lanes(e)) return sum;
      return binary(e);
    case ExprKind::kMulAcc:
      return mul_acc(e);
    case ExprKind::kSelect: {
      Value* condition = expr(e.args[0]);
      return in_index_width(e, {expr(e.args[1]), expr(e.args[2])}, [&](llvm::ArrayRef<Value*> v) {
        return builder_.CreateSelect(condition, v[0], v[1]);
      });
    }
    case ExprKind::kCast:
      if (Value* word = high_word(e)) return word;
      return cast(expr(e.args[0]), e.args[0]->type.dtype, e.type.dtype);
    case ExprKind::kBitcast:
      return bit_cast(e);
    case ExprKind::kRamp:
      return in_index_width(e, {expr(e.args[0])},
                            [&](llvm::ArrayRef<Value*> v) { return ramp(v[0], e.stride, e.type.lanes); });
    case ExprKind::kBroadcast:
      return in_index_width(e, {expr(e.args[0])},
                            [&](llvm::ArrayRef<Value*> v) { return splat(v[0], e.type.lanes); });
    case ExprKind::kDot:
      return dot(e);
    case ExprKind::kReduceLanes:
      return reduce_lanes(e);
    case ExprKind::kInterleave: {
      std::vector<int> lanes;
      int half = e.type.lanes / 2, first = e.stride == 0 ? 0 : half;
      for (int i = 0; i < half; ++i) lanes.insert(lanes.end(), {first + i, e.type.lanes + first + i});
      return builder_.CreateShuffleVector(expr(e.args[0]), expr(e.args[1]), lanes);
    }
  }
  QUERNEL_UNREACHABLE("expression kind");
}

KernelEmitter::Value* KernelEmitter::constant(const loop::ExprNode& e) {
  llvm::Type* type = element_type(e.type.dtype);
  llvm::Constant* scalar;
  if (type->isFloatTy())
    scalar = llvm::ConstantFP::get(
        context_, llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, e.bits, false, true)));
  else if (type->isDoubleTy())
    scalar =
        llvm::ConstantFP::get(context_, llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, e.bits)));
  else if (e.type.dtype == DType::kBool)
    scalar = builder_.getInt1(e.bits != 0);
  else
    scalar = int_constant(type, e.bits);
  return splat(scalar, e.type.lanes);
}

KernelEmitter::Value* KernelEmitter::ramp(Value* base, int64_t stride, int lanes) {
  std::vector<llvm::Constant*> offsets;
  for (int i = 0; i < lanes; ++i)
    offsets.push_back(
        int_constant(base->getType(), static_cast<uint64_t>(i) * static_cast<uint64_t>(stride)));
  if (lanes == 1) return base;
  return builder_.CreateAdd(splat(base, lanes), llvm::ConstantVector::get(offsets));
}

KernelEmitter::Value* KernelEmitter::unary(const loop::ExprNode& e) {
  DType dtype = e.args[0]->type.dtype;
  Value* x = expr(e.args[0]);
  if (!is_float(dtype)) return integer_unary(e.unary, dtype, x);
  bool is_16_bit = dtype == DType::kF16 || dtype == DType::kBF16;
  if (is_16_bit && (e.unary == UnaryOp::k_neg || e.unary == UnaryOp::k_abs)) {  // on the bits, NaN included
    if (e.unary == UnaryOp::k_neg) return builder_.CreateXor(x, int_constant(x->getType(), 0x8000));
    return builder_.CreateAnd(x, int_constant(x->getType(), 0x7fff));
  }
  Value* result = float_unary(e.unary, widen(x, dtype));
  return is_predicate(e.unary) ? result : narrow(result, dtype);
}

KernelEmitter::Value* KernelEmitter::binary(const loop::ExprNode& e) {
  DType dtype = e.args[0]->type.dtype;
  Value* a = expr(e.args[0]);
  Value* b = expr(e.args[1]);
  // Index arithmetic: sign-free division, which is a shift or a multiplication by constants.
  bool divides = e.binary == BinaryOp::k_idiv || e.binary == BinaryOp::k_fdiv ||
                 e.binary == BinaryOp::k_div || e.binary == BinaryOp::k_mod || e.binary == BinaryOp::k_fmod;
  if (dtype == DType::kI64)
    return in_index_width(e, {a, b}, [&](llvm::ArrayRef<Value*> v) {
      if (divides && is_non_negative(e.args[0]) && is_non_negative(e.args[1]))
        return non_negative_division(e.binary, v[0], v[1]);
      return integer_binary(e.binary, dtype, v[0], v[1]);
    });
  // NaN checks are made on the second operand; let that be the one that is not an accumulator.
  bool extreme = e.binary == BinaryOp::k_max || e.binary == BinaryOp::k_min;
  const loop::ExprNode& left = *e.args[0];
  if (extreme && left.kind == ExprKind::kLoad && left.buffer->scope == loop::Scope::kRegister)
    std::swap(a, b);
  return apply_binary(e.binary, dtype, a, b);
}

KernelEmitter::Value* KernelEmitter::apply_binary(BinaryOp op, DType dtype, Value* a, Value* b) {
  if (dtype == DType::kBool) return apply_bool(op, a, b);
  if (!is_float(dtype)) return integer_binary(op, dtype, a, b);
  a = widen(a, dtype);
  b = widen(b, dtype);
  if (is_comparison(op)) return float_compare(op, a, b);
  return narrow(float_binary(op, a, b), dtype);
}

KernelEmitter::Value* KernelEmitter::apply_bool(BinaryOp op, Value* a, Value* b) {
  switch (op) {
    case BinaryOp::k_add:
    case BinaryOp::k_max:
    case BinaryOp::k_or:
      return builder_.CreateOr(a, b);
    case BinaryOp::k_mul:
    case BinaryOp::k_min:
    case BinaryOp::k_and:
      return builder_.CreateAnd(a, b);
    case BinaryOp::k_xor:
    case BinaryOp::k_ne:
      return builder_.CreateXor(a, b);
    case BinaryOp::k_eq:
      return builder_.CreateNot(builder_.CreateXor(a, b));
    case BinaryOp::k_lt:
      return builder_.CreateAnd(builder_.CreateNot(a), b);
    case BinaryOp::k_gt:
      return builder_.CreateAnd(a, builder_.CreateNot(b));
    case BinaryOp::k_le:
      return builder_.CreateOr(builder_.CreateNot(a), b);
    case BinaryOp::k_ge:
      return builder_.CreateOr(a, builder_.CreateNot(b));
    default:
      QUERNEL_UNREACHABLE("bool operation");
  }
}

// f16 and bf16: the product is exact in f32, so that fused and unfused give the same.
KernelEmitter::Value* KernelEmitter::mul_acc(const loop::ExprNode& e) {
  DType dtype = e.type.dtype;
  Value* a = expr(e.args[0]);
  Value* b = expr(e.args[1]);
  Value* c = expr(e.args[2]);
  if (dtype == DType::kBool) return builder_.CreateOr(builder_.CreateAnd(a, b), c);
  if (!is_float(dtype)) return builder_.CreateAdd(builder_.CreateMul(a, b), c);
  a = widen(a, dtype);
  b = widen(b, dtype);
  c = widen(c, dtype);
  Value* sum = isa_.floats(a->getType()).fma
                   ? builder_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c})
                   : builder_.CreateFAdd(builder_.CreateFMul(a, b), c);
  return narrow(sum, dtype);
}

// bool is a byte of 0 or 1, as in memory.
KernelEmitter::Value* KernelEmitter::bit_cast(const loop::ExprNode& e) {
  Value* x = to_memory(e.args[0]->type.dtype, expr(e.args[0]));
  llvm::Type* element = memory_type(e.type.dtype);
  llvm::Type* type =
      e.type.lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(e.type.lanes));
  return from_memory(e.type.dtype, builder_.CreateBitCast(x, type));
}

// Halves are folded pairwise; of an odd count the middle lane waits for the next round.
KernelEmitter::Value* KernelEmitter::reduce_lanes(const loop::ExprNode& e) {
  DType dtype = e.args[0]->type.dtype;
  Value* x = expr(e.args[0]);
  if (!x->getType()->isVectorTy()) return x;
  for (int n = lanes_of(x); n > 1;) {
    int half = n / 2, kept = n - half;
    std::vector<int> low, high, merged;
    for (int i = 0; i < kept; ++i) {
      low.push_back(i);
      high.push_back(i < half ? kept + i : i);
      merged.push_back(i < half ? i : kept + i);
    }
    Value* left = builder_.CreateShuffleVector(x, low);
    x = apply_binary(e.binary, dtype, left, builder_.CreateShuffleVector(x, high));
    if (kept != half) x = builder_.CreateShuffleVector(x, left, merged);
    n = kept;
  }
  return builder_.CreateExtractElement(x, uint64_t{0});
}

llvm::Type* KernelEmitter::index_type() {
  return isa_.narrow_indices ? builder_.getInt32Ty() : builder_.getInt64Ty();
}

// What a sign extension was made of, without it.
KernelEmitter::Value* KernelEmitter::as_index(Value* v) {
  llvm::Type* type = v->getType()->getWithNewType(index_type());
  if (v->getType() == type) return v;
  auto* extension = llvm::dyn_cast<llvm::SExtInst>(v);
  return extension && extension->getSrcTy() == type ? extension->getOperand(0)
                                                    : builder_.CreateTrunc(v, type);
}

KernelEmitter::Value* KernelEmitter::from_index(Value* v) {
  return builder_.CreateSExt(v, v->getType()->getWithNewType(builder_.getInt64Ty()));
}

// Computes the i64 expression, or comparison, `e` from the values of its i64 operands: in 32 bits where the
// target's registers are such and that gives the same, else as it is.
KernelEmitter::Value* KernelEmitter::in_index_width(
    const loop::ExprNode& e, llvm::ArrayRef<Value*> operands,
    llvm::function_ref<Value*(llvm::ArrayRef<Value*>)> compute) {
  if (!fits_index_width(e)) return compute(operands);
  std::vector<Value*> narrow;
  for (Value* v : operands) narrow.push_back(as_index(v));
  Value* result = compute(narrow);
  return e.type.dtype == DType::kI64 ? from_index(result) : result;
}

bool KernelEmitter::fits_index_width(const loop::ExprNode& e) {
  if (!isa_.narrow_indices) return false;
  auto fits = [](loop::Interval range) { return range.within(INT32_MIN, INT32_MAX); };
  bool result_fits = e.type.dtype != DType::kI64 || fits(ranges_.of(e));
  if (!result_fits || e.kind != ExprKind::kBinary) return result_fits && e.type.dtype == DType::kI64;
  switch (e.binary) {
    case BinaryOp::k_add:  // low bits depend on low bits only
    case BinaryOp::k_sub:
    case BinaryOp::k_mul:
    case BinaryOp::k_and:
    case BinaryOp::k_or:
    case BinaryOp::k_xor:
      return true;
    case BinaryOp::k_shl:
    case BinaryOp::k_shr:
    case BinaryOp::k_pow:
    case BinaryOp::k_threefry2x32:
      return false;
    default:
      return fits(ranges_(e.args[0])) && fits(ranges_(e.args[1]));
  }
}

std::optional<KernelEmitter::Affine> KernelEmitter::affine(const loop::Expr& e) {
  if (e->type.dtype != DType::kI64) return std::nullopt;
  switch (e->kind) {
    case ExprKind::kConst:
      return Affine{int_constant(index_type(), e->bits), 0};
    case ExprKind::kRamp:
      if (e->args[0]->type.lanes != 1) return std::nullopt;
      return Affine{as_index(expr(e->args[0])), e->stride};
    case ExprKind::kBroadcast:
      return Affine{as_index(expr(e->args[0])), 0};
    case ExprKind::kVar: {
      auto it = affine_variables_.find(e->var.get());
      if (it == affine_variables_.end()) return std::nullopt;
      return it->second;
    }
    case ExprKind::kBinary:
      break;
    default:
      return std::nullopt;
  }
  if (e->binary != BinaryOp::k_add && e->binary != BinaryOp::k_sub && e->binary != BinaryOp::k_mul)
    return std::nullopt;
  auto a = affine(e->args[0]);
  if (!a) return std::nullopt;
  auto b = affine(e->args[1]);
  if (!b) return std::nullopt;
  if (e->binary == BinaryOp::k_add)
    return Affine{builder_.CreateAdd(a->base, b->base), a->stride + b->stride};
  if (e->binary == BinaryOp::k_sub)
    return Affine{builder_.CreateSub(a->base, b->base), a->stride - b->stride};
  if (a->stride != 0) std::swap(a, b);
  if (a->stride != 0) return std::nullopt;
  Value* base = builder_.CreateMul(a->base, b->base);
  if (b->stride == 0) return Affine{base, 0};
  auto* factor = llvm::dyn_cast<llvm::ConstantInt>(a->base);
  if (!factor) return std::nullopt;
  return Affine{base, b->stride * factor->getSExtValue()};
}

bool KernelEmitter::is_non_negative(const loop::Expr& e) const {
  if (e->type.dtype != DType::kI64) return false;
  switch (e->kind) {
    case ExprKind::kConst:
      return static_cast<int64_t>(e->bits) >= 0;
    case ExprKind::kVar:
      return non_negative_variables_.count(e->var.get()) != 0;
    case ExprKind::kBroadcast:
      return is_non_negative(e->args[0]);
    case ExprKind::kRamp:
      return e->stride >= 0 && is_non_negative(e->args[0]);
    case ExprKind::kSelect:
      return is_non_negative(e->args[1]) && is_non_negative(e->args[2]);
    case ExprKind::kBinary:
      break;
    default:
      return false;
  }
  switch (e->binary) {
    case BinaryOp::k_add:
    case BinaryOp::k_mul:  // indices do not overflow
    case BinaryOp::k_div:
    case BinaryOp::k_idiv:
    case BinaryOp::k_fdiv:
    case BinaryOp::k_min:
    case BinaryOp::k_mod:
    case BinaryOp::k_fmod:
      return is_non_negative(e->args[0]) && is_non_negative(e->args[1]);
    case BinaryOp::k_max:
      return is_non_negative(e->args[0]) || is_non_negative(e->args[1]);
    default:
      return false;
  }
}

}  // namespace quernel::codegen
