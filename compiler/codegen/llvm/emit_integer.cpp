// Integer and bool arithmetic exactly as support/scalar_ops.h defines it: total functions, no traps, no
// library calls.
#include "codegen/llvm/kernel_emitter.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

KernelEmitter::Value* KernelEmitter::integer_unary(UnaryOp op, DType dtype, Value* x) {
  llvm::Type* type = x->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  if (dtype == DType::kBool) {
    switch (op) {
      case UnaryOp::k_neg:
      case UnaryOp::k_not:
      case UnaryOp::k_bit_not:
        return builder_.CreateNot(x);
      case UnaryOp::k_is_nan:
      case UnaryOp::k_is_inf:
        return zero;
      default:
        return x;
    }
  }
  bool is_signed = is_signed_integer(dtype);
  Value* none = llvm::Constant::getNullValue(type->getWithNewBitWidth(1));
  switch (op) {
    case UnaryOp::k_neg:
      return builder_.CreateNeg(x);
    case UnaryOp::k_abs:
      return is_signed ? builder_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, builder_.getFalse()) : x;
    case UnaryOp::k_sign: {
      Value* positive = builder_.CreateZExt(builder_.CreateICmpNE(x, zero), type);
      if (!is_signed) return positive;
      return builder_.CreateSelect(builder_.CreateICmpSLT(x, zero), llvm::Constant::getAllOnesValue(type),
                                   positive);
    }
    case UnaryOp::k_not:
    case UnaryOp::k_bit_not:
      return builder_.CreateNot(x);
    case UnaryOp::k_is_nan:
    case UnaryOp::k_is_inf:
      return none;
    case UnaryOp::k_floor:
    case UnaryOp::k_ceil:
    case UnaryOp::k_round:
    case UnaryOp::k_trunc:
      return x;
    default:
      QUERNEL_UNREACHABLE("integer operation");
  }
}

KernelEmitter::Value* KernelEmitter::integer_binary(BinaryOp op, DType dtype, Value* a, Value* b) {
  bool is_signed = is_signed_integer(dtype);
  using Predicate = llvm::CmpInst::Predicate;
  auto compare = [&](Predicate with_sign, Predicate without) {
    return builder_.CreateICmp(is_signed ? with_sign : without, a, b);
  };
  switch (op) {
    case BinaryOp::k_add:
      if (Value* sum = sum_of_neighbours(a, b)) return sum;
      return builder_.CreateAdd(a, b);
    case BinaryOp::k_sub:
      return builder_.CreateSub(a, b);
    case BinaryOp::k_mul:
      return builder_.CreateMul(a, b);
    case BinaryOp::k_and:
      return builder_.CreateAnd(a, b);
    case BinaryOp::k_or:
      return builder_.CreateOr(a, b);
    case BinaryOp::k_xor:
      return builder_.CreateXor(a, b);
    case BinaryOp::k_max:
      return builder_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, a, b);
    case BinaryOp::k_min:
      return builder_.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, a, b);
    case BinaryOp::k_eq:
      return builder_.CreateICmpEQ(a, b);
    case BinaryOp::k_ne:
      return builder_.CreateICmpNE(a, b);
    case BinaryOp::k_lt:
      return compare(Predicate::ICMP_SLT, Predicate::ICMP_ULT);
    case BinaryOp::k_le:
      return compare(Predicate::ICMP_SLE, Predicate::ICMP_ULE);
    case BinaryOp::k_gt:
      return compare(Predicate::ICMP_SGT, Predicate::ICMP_UGT);
    case BinaryOp::k_ge:
      return compare(Predicate::ICMP_SGE, Predicate::ICMP_UGE);
    case BinaryOp::k_div:
    case BinaryOp::k_idiv:
    case BinaryOp::k_fdiv:
    case BinaryOp::k_mod:
    case BinaryOp::k_fmod:
      return integer_division(op, is_signed, a, b);
    case BinaryOp::k_pow:
      return integer_power(is_signed, a, b);
    case BinaryOp::k_shl:
    case BinaryOp::k_shr:
      return integer_shift(op, is_signed, a, b);
    case BinaryOp::k_threefry2x32:
      return threefry(a, b);
  }
  QUERNEL_UNREACHABLE("integer operation");
}

// The divisor is replaced by 1 where the machine would trap: zero (result then forced to 0) and MIN / -1
// (where x / 1 and x % 1 are the wrapped results). Constant divisors fold the checks away.
KernelEmitter::Value* KernelEmitter::integer_division(BinaryOp op, bool is_signed, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  unsigned width = type->getScalarSizeInBits();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* one = int_constant(type, 1);
  Value* by_zero = builder_.CreateICmpEQ(b, zero);
  Value* trap = by_zero;
  if (is_signed) {
    Value* smallest = llvm::ConstantInt::get(type, llvm::APInt::getSignedMinValue(width));
    trap = builder_.CreateOr(
        by_zero, builder_.CreateAnd(builder_.CreateICmpEQ(a, smallest),
                                    builder_.CreateICmpEQ(b, llvm::Constant::getAllOnesValue(type))));
  }
  Value* divisor = builder_.CreateSelect(trap, one, b);
  bool wants_remainder = op == BinaryOp::k_mod || op == BinaryOp::k_fmod;
  Value* quotient = nullptr;
  Value* remainder = nullptr;
  if (!wants_remainder)
    quotient = is_signed ? builder_.CreateSDiv(a, divisor) : builder_.CreateUDiv(a, divisor);
  bool follows_divisor = is_signed && (op == BinaryOp::k_mod || op == BinaryOp::k_fdiv);
  if (wants_remainder)
    remainder = is_signed ? builder_.CreateSRem(a, divisor) : builder_.CreateURem(a, divisor);
  if (follows_divisor) {
    if (!remainder) remainder = builder_.CreateSub(a, builder_.CreateMul(quotient, divisor));
    Value* adjust = builder_.CreateAnd(builder_.CreateICmpNE(remainder, zero),
                                       builder_.CreateICmpSLT(builder_.CreateXor(remainder, divisor), zero));
    if (wants_remainder)
      remainder = builder_.CreateSelect(adjust, builder_.CreateAdd(remainder, divisor), remainder);
    else
      quotient = builder_.CreateAdd(quotient, builder_.CreateSExt(adjust, type));
  }
  return builder_.CreateSelect(by_zero, zero, wants_remainder ? remainder : quotient);
}

// Of index arithmetic, both operands known to be >= 0.
KernelEmitter::Value* KernelEmitter::non_negative_division(BinaryOp op, Value* a, Value* b) {
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* by_zero = builder_.CreateICmpEQ(b, zero);
  Value* divisor = builder_.CreateSelect(by_zero, int_constant(a->getType(), 1), b);
  bool wants_remainder = op == BinaryOp::k_mod || op == BinaryOp::k_fmod;
  Value* result = wants_remainder ? builder_.CreateURem(a, divisor) : builder_.CreateUDiv(a, divisor);
  return builder_.CreateSelect(by_zero, zero, result);
}

// By squaring, modulo 2^width. A negative power truncates to 0 but for the bases 1 and -1.
KernelEmitter::Value* KernelEmitter::integer_power(bool is_signed, Value* base, Value* exponent) {
  llvm::Type* type = base->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* one = int_constant(type, 1);
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* body = new_block("power");
  llvm::BasicBlock* after = new_block("powered");
  builder_.CreateBr(body);
  builder_.SetInsertPoint(body);
  llvm::PHINode* result = builder_.CreatePHI(type, 2);
  llvm::PHINode* square = builder_.CreatePHI(type, 2);
  llvm::PHINode* rest = builder_.CreatePHI(type, 2);
  result->addIncoming(one, before);
  square->addIncoming(base, before);
  rest->addIncoming(exponent, before);
  Value* odd = builder_.CreateICmpNE(builder_.CreateAnd(rest, one), zero);
  Value* next = builder_.CreateSelect(odd, builder_.CreateMul(result, square), result);
  result->addIncoming(next, body);
  square->addIncoming(builder_.CreateMul(square, square), body);
  Value* shifted = builder_.CreateLShr(rest, one);
  rest->addIncoming(shifted, body);
  Value* more = builder_.CreateICmpNE(shifted, zero);
  if (more->getType()->isVectorTy()) more = any_lane(more);
  builder_.CreateCondBr(more, body, after)->setMetadata(llvm::LLVMContext::MD_loop, loop_metadata());
  builder_.SetInsertPoint(after);
  if (!is_signed) return next;
  Value* minus_one = llvm::Constant::getAllOnesValue(type);
  Value* odd_power = builder_.CreateICmpNE(builder_.CreateAnd(exponent, one), zero);
  Value* of_minus_one = builder_.CreateSelect(odd_power, minus_one, one);
  Value* inverse = builder_.CreateSelect(builder_.CreateICmpEQ(base, minus_one), of_minus_one, zero);
  inverse = builder_.CreateSelect(builder_.CreateICmpEQ(base, one), one, inverse);
  return builder_.CreateSelect(builder_.CreateICmpSLT(exponent, zero), inverse, next);
}

// 20 rounds; the parity constant is SKEIN's. The halves are computed as vectors of 32-bit elements.
KernelEmitter::Value* KernelEmitter::threefry(Value* key, Value* counter) {
  static constexpr uint64_t kRotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  llvm::Type* wide = key->getType();
  llvm::Type* word = wide->getWithNewBitWidth(32);
  auto low = [&](Value* x) { return builder_.CreateTrunc(x, word); };
  auto high = [&](Value* x) { return low(builder_.CreateLShr(x, int_constant(wide, 32))); };
  Value* keys[3] = {low(key), high(key), nullptr};
  keys[2] = builder_.CreateXor(builder_.CreateXor(keys[0], keys[1]), int_constant(word, 0x1bd11bda));
  Value* a = builder_.CreateAdd(low(counter), keys[0]);
  Value* b = builder_.CreateAdd(high(counter), keys[1]);
  for (uint64_t round = 0; round < 20; ++round) {
    a = builder_.CreateAdd(a, b);
    Value* count = int_constant(word, kRotations[round % 8]);
    b = builder_.CreateXor(builder_.CreateIntrinsic(llvm::Intrinsic::fshl, {word}, {b, b, count}), a);
    if (round % 4 != 3) continue;
    uint64_t injection = round / 4 + 1;
    a = builder_.CreateAdd(a, keys[injection % 3]);
    b = builder_.CreateAdd(b, builder_.CreateAdd(keys[(injection + 1) % 3], int_constant(word, injection)));
  }
  Value* upper = builder_.CreateShl(builder_.CreateZExt(b, wide), int_constant(wide, 32));
  return builder_.CreateOr(builder_.CreateZExt(a, wide), upper);
}

// A count outside [0, width), seen as unsigned, shifts everything out.
KernelEmitter::Value* KernelEmitter::integer_shift(BinaryOp op, bool is_signed, Value* a, Value* b) {
  llvm::Type* type = a->getType();
  unsigned width = type->getScalarSizeInBits();
  Value* largest = int_constant(type, width - 1);
  Value* count = builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b, largest);
  if (op == BinaryOp::k_shr && is_signed) return builder_.CreateAShr(a, count);
  Value* shifted = op == BinaryOp::k_shl ? builder_.CreateShl(a, count) : builder_.CreateLShr(a, count);
  return builder_.CreateSelect(builder_.CreateICmpUGT(b, largest), llvm::Constant::getNullValue(type),
                               shifted);
}

}  // namespace quernel::codegen
