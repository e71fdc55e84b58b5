// Expressions: constants, index vectors, dispatch by dtype, selects and lane reductions.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsAArch64.h>

#include <bit>
#include <cmath>

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
      if (Value* sum = sum_of_halves(e)) return sum;
      if (Value* bytes = shift_of_bytes(e)) return bytes;
      if (Value* floats = fraction(e)) return floats;
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
    case ExprKind::kDot2x2:
      return dot_2x2(e);
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

// Vectors of words shifted to the left, and the bits cleared that came from the next lower byte: one shift of bytes. Null
// where `e`, a binary operation, is something else.
KernelEmitter::Value* KernelEmitter::shift_of_bytes(const loop::ExprNode& e) {
  const loop::ExprNode& shift = *e.args[0];
  int64_t count = 0, mask = 0;
  if (!isa_.neon_shifts || e.binary != BinaryOp::k_and || e.type.dtype != DType::kU32 || e.type.lanes == 1 ||
      shift.kind != ExprKind::kBinary || shift.binary != BinaryOp::k_shl ||
      !loop::as_const_int(shift.args[1], &count) || !loop::as_const_int(e.args[1], &mask))
    return nullptr;
  if (count <= 0 || count >= 8 || static_cast<uint32_t>(mask) != ((0xffu << count) & 0xffu) * 0x01010101u)
    return nullptr;
  Value* words = expr(shift.args[0]);
  llvm::Type* bytes =
      llvm::FixedVectorType::get(builder_.getInt8Ty(), 4 * static_cast<unsigned>(e.type.lanes));
  Value* shifted = builder_.CreateShl(builder_.CreateBitCast(words, bytes),
                                      int_constant(bytes, static_cast<uint64_t>(count)));
  return builder_.CreateBitCast(shifted, words->getType());
}

// Vectors of integers converted to floats and multiplied by 2^-n: one conversion of numbers with n binary places. Null where
// `e`, a binary operation, is something else.
KernelEmitter::Value* KernelEmitter::fraction(const loop::ExprNode& e) {
  constexpr int kLanes = 4, kMostPlaces = 32;
  const loop::ExprNode& cast = *e.args[0];
  const loop::ExprNode& factor = *e.args[1];
  const loop::Type floats{DType::kF32, kLanes};
  if (!isa_.neon_fractions || e.binary != BinaryOp::k_mul || e.type != floats ||
      cast.kind != ExprKind::kCast || cast.args[0]->type.dtype != DType::kI32 ||
      factor.kind != ExprKind::kConst)
    return nullptr;
  int exponent = 0;
  const double mantissa = std::frexp(std::bit_cast<float>(static_cast<uint32_t>(factor.bits)), &exponent);
  const int places = 1 - exponent;
  if (mantissa != 0.5 || places < 1 || places > kMostPlaces) return nullptr;
  Value* x = expr(cast.args[0]);
  return builder_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_vcvtfxs2fp,
                                  {x->getType()->getWithNewType(builder_.getFloatTy()), x->getType()},
                                  {x, builder_.getInt32(static_cast<uint32_t>(places))});
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

KernelEmitter::Value* KernelEmitter::reduce_lanes(const loop::ExprNode& e) {
  const DType dtype = e.args[0]->type.dtype;
  Value* x = expr(e.args[0]);
  if (!x->getType()->isVectorTy()) return x;
  const bool is_max = e.binary == BinaryOp::k_max;
  if (is_float(dtype) && (is_max || e.binary == BinaryOp::k_min))
    return narrow(extreme_of_lanes(is_max, widen(x, dtype)), dtype);
  return fold_lanes(x, [&](Value* a, Value* b) { return apply_binary(e.binary, dtype, a, b); });
}

// NaN if a lane is one, which one check finds out for all.
KernelEmitter::Value* KernelEmitter::extreme_of_lanes(bool is_max, Value* x) {
  if (isa_.neon_extremes)
    return builder_.CreateUnaryIntrinsic(
        is_max ? llvm::Intrinsic::vector_reduce_fmaximum : llvm::Intrinsic::vector_reduce_fminimum, x);
  Value* any = builder_.CreateOrReduce(builder_.CreateFCmpUNO(x, x));
  Value* result = fold_lanes(x, [&](Value* a, Value* b) {
    if (Value* extreme = vector_extreme(is_max, a, b)) return extreme;
    return builder_.CreateSelect(is_max ? builder_.CreateFCmpOGT(a, b) : builder_.CreateFCmpOLT(a, b), a, b);
  });
  return builder_.CreateSelect(any, llvm::ConstantFP::getNaN(result->getType()), result);
}

// Halves are folded pairwise; of an odd count the middle lane waits for the next round.
KernelEmitter::Value* KernelEmitter::fold_lanes(Value* x,
                                                llvm::function_ref<Value*(Value*, Value*)> combine) {
  for (int n = lanes_of(x); n > 1;) {
    int half = n / 2, kept = n - half;
    std::vector<int> low, high, merged;
    for (int i = 0; i < kept; ++i) {
      low.push_back(i);
      high.push_back(i < half ? kept + i : i);
      merged.push_back(i < half ? i : kept + i);
    }
    Value* left = builder_.CreateShuffleVector(x, low);
    x = combine(left, builder_.CreateShuffleVector(x, high));
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
