// Conversions between dtypes. Floats narrow in one rounding, to nearest even; float to integer truncates and
// saturates, NaN gives 0. Where the target has no f16 conversion, integer code does it, so that no library
// function is called.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/PatternMatch.h>

#include <cmath>

#include "codegen/llvm/expand_instructions.h"
#include "codegen/llvm/kernel_emitter.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

KernelEmitter::Value* KernelEmitter::cast(Value* x, DType from, DType to) {
  if (from == to) return x;
  if (is_float(from)) {
    Value* wide = widen(x, from);
    if (to == DType::kBool)
      return builder_.CreateFCmpUNE(wide, llvm::Constant::getNullValue(wide->getType()));
    if (!is_float(to)) return float_to_integer(wide, to);
    if (to == DType::kF64)
      return builder_.CreateFPExt(wide, wide->getType()->getWithNewType(builder_.getDoubleTy()));
    return narrow(wide, to);
  }
  if (isa_.narrow_indices && from == DType::kI64 && llvm::isa<llvm::SExtInst>(x)) {
    Value* index = as_index(x);
    if (!llvm::isa<llvm::TruncInst>(index)) return cast(index, DType::kI32, to);
  }
  if (is_float(to)) return integer_to_float(x, from, to);
  if (to == DType::kBool) return builder_.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType()));
  llvm::Type* type = x->getType()->getWithNewType(element_type(to));
  return is_signed_integer(from) ? builder_.CreateSExtOrTrunc(x, type) : builder_.CreateZExtOrTrunc(x, type);
}

// An i64 factor of 32 bits, as i32; null where it may have more.
KernelEmitter::Value* KernelEmitter::narrow_factor(const loop::Expr& e) {
  if (e->kind == loop::ExprKind::kCast && e->args[0]->type.dtype == DType::kI32) return expr(e->args[0]);
  if (e->kind == loop::ExprKind::kBroadcast) {
    Value* scalar = narrow_factor(e->args[0]);
    return scalar ? splat(scalar, e->type.lanes) : nullptr;
  }
  int64_t value = 0;
  if (!loop::as_const_int(e, &value) || value != static_cast<int32_t>(value)) return nullptr;
  return splat(builder_.getInt32(static_cast<uint32_t>(value)), e->type.lanes);
}

// The upper halves of products of four i32, an instruction of MVE: LLVM finds it only where no operand was widened
// outside of a loop. Null where `e`, a cast, is something else.
KernelEmitter::Value* KernelEmitter::high_word(const loop::ExprNode& e) {
  using loop::ExprKind;
  const loop::Type words{DType::kI32, 4};
  if (!isa_.mve || e.type != words) return nullptr;
  const loop::ExprNode& shift = *e.args[0];
  if (shift.kind != ExprKind::kBinary || shift.binary != BinaryOp::k_shr || shift.type.dtype != DType::kI64)
    return nullptr;
  const loop::ExprNode& product = *shift.args[0];
  int64_t count = 0;
  if (!loop::as_const_int(shift.args[1], &count) || count != 32) return nullptr;
  if (product.kind != ExprKind::kBinary || product.binary != BinaryOp::k_mul) return nullptr;
  Value* factors[2];
  for (size_t i = 0; i < 2; ++i) {
    factors[i] = narrow_factor(product.args[i]);
    if (!factors[i]) return nullptr;
  }
  return builder_.CreateIntrinsic(llvm::Intrinsic::arm_mve_vmulh, {factors[0]->getType()},
                                  {factors[0], factors[1], builder_.getInt32(0)});
}

KernelEmitter::Value* KernelEmitter::widen(Value* x, DType dtype) {
  if (dtype == DType::kF16) return f16_to_f32(x);
  if (dtype == DType::kBF16) return bf16_to_f32(x);
  if (dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2) return f8_to_f32(x, dtype);
  return x;
}

KernelEmitter::Value* KernelEmitter::narrow(Value* x, DType dtype) {
  if (dtype == DType::kF64) return x;
  if (dtype == DType::kF32)
    return builder_.CreateFPTrunc(x, x->getType()->getWithNewType(builder_.getFloatTy()));
  if (x->getType()->getScalarType()->isDoubleTy()) x = f64_to_f32_odd(x);
  if (dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2) return f32_to_f8(x, dtype);
  return dtype == DType::kF16 ? f32_to_f16(x) : f32_to_bf16(x);
}

// LLVM takes vectors of narrow elements apart: they are brought into range here, and go through i32. Values
// that were rounded, and perhaps moved by a whole number, which is exact within that range, are rounded by
// the conversion.
KernelEmitter::Value* KernelEmitter::float_to_narrow_integer(Value* x, DType to) {
  int bits = bit_width(to);
  bool is_signed = is_signed_integer(to);
  if (isa_.neon_narrowing && lanes_of(x) == 4 && bits >= 8 && x->getType()->getScalarType()->isFloatTy())
    return neon_narrow(x, to);
  int64_t lowest = is_signed ? -(int64_t{1} << (bits - 1)) : 0,
          highest = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1, moved = 0;
  Value* rounded = nullptr;
  if (isa_.round_to_int && x->getType()->getScalarType()->isFloatTy()) {
    Value* inner = x;
    const llvm::APFloat* by = nullptr;
    if (llvm::PatternMatch::match(x, llvm::PatternMatch::m_FAdd(llvm::PatternMatch::m_Value(inner),
                                                                llvm::PatternMatch::m_APFloat(by))) &&
        std::abs(by->convertToFloat()) <= 256 && by->isInteger())
      moved = static_cast<int64_t>(by->convertToFloat());
    else
      inner = x;
    auto* round = llvm::dyn_cast<llvm::IntrinsicInst>(inner);
    if (round && round->getIntrinsicID() == llvm::Intrinsic::roundeven) rounded = round->getArgOperand(0);
  }
  if (rounded)
    x = rounded;
  else
    moved = 0;
  auto number = [&](int64_t value) {
    return llvm::ConstantFP::get(x->getType(), static_cast<double>(value - moved));
  };
  if (is_signed) x = builder_.CreateSelect(builder_.CreateFCmpUNO(x, x), number(0), x);
  x = builder_.CreateSelect(builder_.CreateFCmpOGT(x, number(lowest)), x,
                            number(lowest));  // NaN is not above
  x = builder_.CreateSelect(builder_.CreateFCmpOLT(x, number(highest)), x, number(highest));
  llvm::Type* i32 = x->getType()->getWithNewType(builder_.getInt32Ty());
  x = rounded ? builder_.CreateIntrinsic(llvm::Intrinsic::lrint, {i32, x->getType()}, {x})
              : builder_.CreateFPToSI(apart_from_products(x), i32);
  if (moved != 0) x = builder_.CreateAdd(x, int_constant(i32, static_cast<uint64_t>(moved)));
  return builder_.CreateTrunc(x, x->getType()->getWithNewType(element_type(to)));
}

// The conversion saturates, and so does each narrowing; NaN becomes 0. A vector of bytes is the lower half of one of eight.
KernelEmitter::Value* KernelEmitter::neon_narrow(Value* x, DType to) {
  namespace intrinsic = llvm::Intrinsic;
  const bool to_bytes = bit_width(to) <= 8;
  auto narrow = [&](Value* wide, bool is_last) {
    llvm::Type* type =
        llvm::VectorType::getTruncatedElementVectorType(llvm::cast<llvm::VectorType>(wide->getType()));
    const intrinsic::ID id =
        is_last && !is_signed_integer(to) ? intrinsic::aarch64_neon_sqxtun : intrinsic::aarch64_neon_sqxtn;
    return builder_.CreateIntrinsic(id, {type}, {wide});
  };
  llvm::Type* i32 = x->getType()->getWithNewType(builder_.getInt32Ty());
  x = narrow(builder_.CreateIntrinsic(intrinsic::fptosi_sat, {i32, x->getType()}, {x}), !to_bytes);
  if (!to_bytes) return x;
  x = builder_.CreateShuffleVector(x, llvm::ArrayRef<int>{0, 1, 2, 3, -1, -1, -1, -1});
  return builder_.CreateShuffleVector(narrow(x, true), llvm::ArrayRef<int>{0, 1, 2, 3});
}

// Of a conversion and a product with a power of two LLVM makes one instruction of MVE, and it happens that
// the count of bits is then the number of a register.
KernelEmitter::Value* KernelEmitter::apart_from_products(Value* x) {
  if (!isa_.mve || !x->getType()->isVectorTy()) return x;
  return builder_.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {x->getType()}, {x});
}

KernelEmitter::Value* KernelEmitter::float_to_integer(Value* x, DType to) {
  if (bit_width(to) < 32) return float_to_narrow_integer(x, to);
  llvm::Type* type = x->getType()->getWithNewType(element_type(to));
  // SSE has no conversion to 64 bits of more than one element.
  constexpr unsigned kAvxBits = 256;
  int bits = bit_width(to);
  bool converts = isa_.x86 && type->isVectorTy() && is_signed_integer(to) &&
                  (bits == 32 || x->getType()->getPrimitiveSizeInBits() >= kAvxBits);
  if (converts) {
    // LLVM takes saturating vectors apart. What the conversion makes of elements out of range is not used.
    llvm::APInt highest = llvm::APInt::getSignedMaxValue(bits), lowest = llvm::APInt::getSignedMinValue(bits);
    Value* limit = llvm::ConstantFP::get(x->getType(), std::ldexp(1.0, bits - 1));
    Value* result = builder_.CreateFPToSI(x, type);
    result = builder_.CreateSelect(builder_.CreateFCmpOGE(x, limit), llvm::ConstantInt::get(type, highest),
                                   result);
    result = builder_.CreateSelect(builder_.CreateFCmpOLT(x, builder_.CreateFNeg(limit)),
                                   llvm::ConstantInt::get(type, lowest), result);
    return builder_.CreateSelect(builder_.CreateFCmpUNO(x, x), llvm::Constant::getNullValue(type), result);
  }
  auto id = is_signed_integer(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
  return builder_.CreateIntrinsic(id, {type, x->getType()}, {apart_from_products(x)});
}

// To f16 through f32: whatever is inexact there is infinite in f16. To bf16 through f64, where 64-bit
// integers are made exact first: bits that f64 cannot hold are folded into one sticky bit far below bf16's
// last place.
KernelEmitter::Value* KernelEmitter::integer_to_float(Value* x, DType from, DType to) {
  bool is_signed = is_signed_integer(from);
  bool through_f64 = to == DType::kF64 || (to == DType::kBF16 && bit_width(from) >= 32);
  if (to == DType::kBF16 && bit_width(from) == 64) x = fold_low_bits(builder_, x, is_signed);
  llvm::Type* type =
      x->getType()->getWithNewType(through_f64 ? builder_.getDoubleTy() : builder_.getFloatTy());
  Value* wide =
      apart_from_products(is_signed ? builder_.CreateSIToFP(x, type) : builder_.CreateUIToFP(x, type));
  return to == DType::kF32 || to == DType::kF64 ? wide : narrow(wide, to);
}

// Rounds to f32 toward zero with the last bit set if anything was lost (round to odd), so that a second
// rounding to a much narrower format gives what one rounding would.
KernelEmitter::Value* KernelEmitter::f64_to_f32_odd(Value* x) {
  llvm::Type* f32 = x->getType()->getWithNewType(builder_.getFloatTy());
  llvm::Type* i32 = x->getType()->getWithNewType(builder_.getInt32Ty());
  Value* nearest = builder_.CreateFPTrunc(x, f32);
  Value* back = builder_.CreateFPExt(nearest, x->getType());
  Value* inexact = builder_.CreateFCmpONE(back, x);
  Value* too_large = builder_.CreateFCmpOGT(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                            builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  Value* bits = builder_.CreateBitCast(nearest, i32);
  bits = builder_.CreateAdd(bits, builder_.CreateSExt(too_large, i32));
  bits = builder_.CreateOr(bits, builder_.CreateZExt(inexact, i32));
  return builder_.CreateBitCast(bits, f32);
}

KernelEmitter::Value* KernelEmitter::bf16_to_f32(Value* x) {
  llvm::Type* i32 = x->getType()->getWithNewType(builder_.getInt32Ty());
  Value* bits = builder_.CreateShl(builder_.CreateZExt(x, i32), int_constant(i32, 16));
  return builder_.CreateBitCast(bits, x->getType()->getWithNewType(builder_.getFloatTy()));
}

KernelEmitter::Value* KernelEmitter::f32_to_bf16(Value* x) {
  llvm::Type* i32 = x->getType()->getWithNewType(builder_.getInt32Ty());
  llvm::Type* i16 = x->getType()->getWithNewType(builder_.getInt16Ty());
  Value* bits = builder_.CreateBitCast(x, i32);
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(bits, int_constant(i32, 16)), int_constant(i32, 1));
  Value* rounded = builder_.CreateAdd(bits, builder_.CreateAdd(odd, int_constant(i32, 0x7fff)));
  Value* quiet =
      builder_.CreateOr(bits, int_constant(i32, 0x400000));  // rounding could turn a NaN into infinity
  bits = builder_.CreateSelect(builder_.CreateFCmpUNO(x, x), quiet, rounded);
  return builder_.CreateTrunc(builder_.CreateLShr(bits, int_constant(i32, 16)), i16);
}

// f8e5m2 is the upper byte of a f16. f8e4m3 has f16's layout with a shorter mantissa and an exponent that is
// less by 8, and no infinities.
KernelEmitter::Value* KernelEmitter::f8_to_f32(Value* x, DType dtype) {
  llvm::Type* i16 = x->getType()->getWithNewType(builder_.getInt16Ty());
  auto c = [&](uint64_t value) { return int_constant(i16, value); };
  Value* upper = builder_.CreateShl(builder_.CreateZExt(x, i16), c(8));
  if (dtype == DType::kF8E5M2) return f16_to_f32(upper);
  Value* sign = builder_.CreateAnd(upper, c(0x8000));
  Value* magnitude = builder_.CreateAnd(upper, c(0x7f00));
  Value* half = builder_.CreateOr(sign, builder_.CreateLShr(magnitude, c(1)));
  Value* scaled = f16_to_f32(half);
  Value* value = builder_.CreateFMul(scaled, llvm::ConstantFP::get(scaled->getType(), 256.0));
  Value* nan = llvm::ConstantFP::getNaN(scaled->getType());
  return builder_.CreateSelect(builder_.CreateICmpEQ(magnitude, c(0x7f00)), nan, value);
}

// As f32_to_f16, but that what is too large, infinities included, becomes the largest finite value.
KernelEmitter::Value* KernelEmitter::f32_to_f8(Value* x, DType dtype) {
  bool is_e4m3 = dtype == DType::kF8E4M3;
  uint32_t bias = is_e4m3 ? 7 : 15, mantissa = is_e4m3 ? 3 : 2, shift = 23 - mantissa;
  uint32_t largest = is_e4m3 ? 0x7e : 0x7b, not_a_number = is_e4m3 ? 0x7f : 0x7e;
  llvm::Type* i8 = x->getType()->getWithNewType(builder_.getInt8Ty());
  llvm::Type* i32 = x->getType()->getWithNewType(builder_.getInt32Ty());
  auto c = [&](uint32_t value) { return int_constant(i32, value); };
  Value* bits = builder_.CreateBitCast(x, i32);
  Value* sign = builder_.CreateAnd(builder_.CreateLShr(bits, c(24)), c(0x80));
  Value* magnitude = builder_.CreateAnd(bits, c(0x7fffffff));
  // Adding a power of two leaves a value below the smallest normal as a multiple of the smallest denormal.
  uint32_t power = 127 + 23 + 1 - bias - mantissa;
  Value* unit = builder_.CreateBitCast(c(power << 23), x->getType());
  Value* sum = builder_.CreateFAdd(builder_.CreateBitCast(magnitude, x->getType()), unit);
  Value* denormal = builder_.CreateSub(builder_.CreateBitCast(sum, i32), c(power << 23));
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, c(shift)), c(1));
  Value* rebiased = builder_.CreateAdd(magnitude, c((1u << (shift - 1)) - 1 - ((127 - bias) << 23)));
  Value* normal = builder_.CreateLShr(builder_.CreateAdd(rebiased, odd), c(shift));
  Value* result =
      builder_.CreateSelect(builder_.CreateICmpULT(magnitude, c((128 - bias) << 23)), denormal, normal);
  uint32_t limit = is_e4m3 ? 0x43e00000 : 0x47600000;  // 448, 57344
  result = builder_.CreateSelect(builder_.CreateICmpUGE(magnitude, c(limit)), c(largest), result);
  result = builder_.CreateSelect(builder_.CreateICmpUGT(magnitude, c(0x7f800000)), c(not_a_number), result);
  return builder_.CreateTrunc(builder_.CreateOr(result, sign), i8);
}

KernelEmitter::Value* KernelEmitter::f16_to_f32(Value* x) {
  llvm::Type* f32 = x->getType()->getWithNewType(builder_.getFloatTy());
  if (isa_.f16_conversion)
    return builder_.CreateFPExt(builder_.CreateBitCast(x, x->getType()->getWithNewType(builder_.getHalfTy())),
                                f32);
  llvm::Type* i32 = x->getType()->getWithNewType(builder_.getInt32Ty());
  auto c = [&](uint32_t value) { return int_constant(i32, value); };
  Value* wide = builder_.CreateZExt(x, i32);
  Value* sign = builder_.CreateShl(builder_.CreateAnd(wide, c(0x8000)), c(16));
  if (isa_.f16_normals) {
    llvm::Type* f16 = x->getType()->getWithNewType(builder_.getHalfTy());
    Value* number = builder_.CreateFPExt(builder_.CreateBitCast(x, f16), f32);
    Value* units = builder_.CreateUIToFP(builder_.CreateAnd(wide, c(0x3ff)), f32);
    Value* denormal = builder_.CreateFMul(units, llvm::ConstantFP::get(f32, 0x1p-24));
    denormal = builder_.CreateBitCast(builder_.CreateOr(builder_.CreateBitCast(denormal, i32), sign), f32);
    Value* is_denormal = builder_.CreateICmpEQ(builder_.CreateAnd(wide, c(0x7c00)), c(0));
    return builder_.CreateSelect(is_denormal, denormal, number);
  }
  Value* magnitude = builder_.CreateShl(builder_.CreateAnd(wide, c(0x7fff)), c(13));  // f32 layout, f16 bias
  Value* normal = builder_.CreateAdd(magnitude, c((127 - 15) << 23));
  // Infinities and NaNs get the largest exponent; NaNs become quiet, as by hardware.
  Value* special = builder_.CreateOr(magnitude, c(0x7f800000));
  Value* is_nan = builder_.CreateICmpUGT(magnitude, c(0x0f800000));
  special = builder_.CreateSelect(is_nan, builder_.CreateOr(special, c(0x400000)), special);
  // A denormal m * 2^-24 is (1 + m * 2^-10) * 2^-14 - 2^-14.
  Value* biased = builder_.CreateBitCast(builder_.CreateOr(magnitude, c(113u << 23)), f32);
  Value* two_to_minus_14 = llvm::ConstantFP::get(f32, 0x1p-14);
  Value* denormal = builder_.CreateBitCast(builder_.CreateFSub(biased, two_to_minus_14), i32);
  Value* bits = builder_.CreateSelect(builder_.CreateICmpUGE(magnitude, c(0x0f800000)), special, normal);
  bits = builder_.CreateSelect(builder_.CreateICmpULT(magnitude, c(1 << 23)), denormal, bits);
  return builder_.CreateBitCast(builder_.CreateOr(bits, sign), f32);
}

KernelEmitter::Value* KernelEmitter::f32_to_f16(Value* x) {
  llvm::Type* i16 = x->getType()->getWithNewType(builder_.getInt16Ty());
  if (isa_.f16_conversion)
    return builder_.CreateBitCast(
        builder_.CreateFPTrunc(x, x->getType()->getWithNewType(builder_.getHalfTy())), i16);
  llvm::Type* i32 = x->getType()->getWithNewType(builder_.getInt32Ty());
  auto c = [&](uint32_t value) { return int_constant(i32, value); };
  Value* bits = builder_.CreateBitCast(x, i32);
  Value* sign = builder_.CreateAnd(builder_.CreateLShr(bits, c(16)), c(0x8000));
  Value* magnitude = builder_.CreateAnd(bits, c(0x7fffffff));
  // Adding 0.5 to a value below 2^-14 leaves it as a multiple of 2^-24, rounded, in the low bits.
  Value* half = llvm::ConstantFP::get(x->getType(), 0.5);
  Value* sum = builder_.CreateFAdd(builder_.CreateBitCast(magnitude, x->getType()), half);
  Value* denormal = builder_.CreateSub(builder_.CreateBitCast(sum, i32), c(0x3f000000));
  Value* is_denormal = builder_.CreateICmpULT(magnitude, c(0x38800000));
  if (isa_.f16_normals) {
    Value* rounded = builder_.CreateFPTrunc(x, x->getType()->getWithNewType(builder_.getHalfTy()));
    Value* number = builder_.CreateBitCast(rounded, i16);
    denormal = builder_.CreateTrunc(builder_.CreateOr(denormal, sign), i16);
    return builder_.CreateSelect(is_denormal, denormal, number);
  }
  Value* odd = builder_.CreateAnd(builder_.CreateLShr(magnitude, c(13)), c(1));
  Value* rebiased = builder_.CreateAdd(magnitude, c(0xfff - ((127u - 15u) << 23)));
  Value* normal = builder_.CreateLShr(builder_.CreateAdd(rebiased, odd), c(13));
  Value* payload = builder_.CreateAnd(builder_.CreateLShr(magnitude, c(13)), c(0x3ff));
  Value* is_nan = builder_.CreateICmpUGT(magnitude, c(0x7f800000));
  Value* special = builder_.CreateSelect(is_nan, builder_.CreateOr(payload, c(0x7e00)), c(0x7c00));
  Value* result = builder_.CreateSelect(is_denormal, denormal, normal);
  result = builder_.CreateSelect(builder_.CreateICmpUGE(magnitude, c(0x47800000)), special, result);
  return builder_.CreateTrunc(builder_.CreateOr(result, sign), i16);
}

}  // namespace quernel::codegen
