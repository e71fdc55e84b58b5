// Float arithmetic on float and double values: NaN-propagating extremes, comparisons, remainders;
// transcendental functions go to math_builder.h.
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/math_builder.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

KernelEmitter::Value* KernelEmitter::float_unary(UnaryOp op, Value* x) {
  llvm::Type* type = x->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  switch (op) {
    case UnaryOp::k_neg:
      return builder_.CreateFNeg(x);
    case UnaryOp::k_abs:
      return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    case UnaryOp::k_sqrt:
      return builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x);
    case UnaryOp::k_rsqrt:
      return builder_.CreateFDiv(llvm::ConstantFP::get(type, 1.0),
                                 builder_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
    case UnaryOp::k_recip:
      return builder_.CreateFDiv(llvm::ConstantFP::get(type, 1.0), x);
    case UnaryOp::k_sign: {  // zeros and NaN are their own sign
      Value* negative =
          builder_.CreateSelect(builder_.CreateFCmpOLT(x, zero), llvm::ConstantFP::get(type, -1.0), x);
      return builder_.CreateSelect(builder_.CreateFCmpOGT(x, zero), llvm::ConstantFP::get(type, 1.0),
                                   negative);
    }
    case UnaryOp::k_is_nan:
      return builder_.CreateFCmpUNO(x, zero);
    case UnaryOp::k_is_inf:
      return builder_.CreateFCmpOEQ(builder_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x),
                                    llvm::ConstantFP::getInfinity(type));
    default:
      return MathBuilder(builder_, isa_, type).unary(op, x);
  }
}

KernelEmitter::Value* KernelEmitter::float_binary(BinaryOp op, Value* a, Value* b) {
  switch (op) {
    case BinaryOp::k_add:
      return builder_.CreateFAdd(a, b);
    case BinaryOp::k_sub:
      return builder_.CreateFSub(a, b);
    case BinaryOp::k_mul:
      return builder_.CreateFMul(a, b);
    case BinaryOp::k_div:
      return builder_.CreateFDiv(a, b);
    case BinaryOp::k_max:
      return float_extreme(true, a, b);
    case BinaryOp::k_min:
      return float_extreme(false, a, b);
    case BinaryOp::k_pow:
      return MathBuilder(builder_, isa_, a->getType()).pow(a, b);
    case BinaryOp::k_mod:
    case BinaryOp::k_fmod:
      return float_remainder(op, a, b);
    case BinaryOp::k_idiv:
    case BinaryOp::k_fdiv: {  // in f64, so that a quotient just below an integer is not rounded up to it
                              // first
      llvm::Type* f64 = a->getType()->getWithNewType(builder_.getDoubleTy());
      Value* quotient = builder_.CreateFDiv(builder_.CreateFPExt(a, f64), builder_.CreateFPExt(b, f64));
      MathBuilder math(builder_, isa_, f64);
      return op == BinaryOp::k_idiv ? math.trunc(quotient) : math.floor(quotient);
    }
    default:
      QUERNEL_UNREACHABLE("float operation");
  }
}

KernelEmitter::Value* KernelEmitter::float_compare(BinaryOp op, Value* a, Value* b) {
  switch (op) {
    case BinaryOp::k_eq:
      return builder_.CreateFCmpOEQ(a, b);
    case BinaryOp::k_ne:
      return builder_.CreateFCmpUNE(a, b);
    case BinaryOp::k_lt:
      return builder_.CreateFCmpOLT(a, b);
    case BinaryOp::k_le:
      return builder_.CreateFCmpOLE(a, b);
    case BinaryOp::k_gt:
      return builder_.CreateFCmpOGT(a, b);
    case BinaryOp::k_ge:
      return builder_.CreateFCmpOGE(a, b);
    default:
      QUERNEL_UNREACHABLE("comparison");
  }
}

// x86's max gives its second operand if either is NaN, so `a > b ? a : b` is one instruction that lets a NaN
// in b through; a NaN in a needs a check, unless a is a constant. In a reduction the running value is the
// first operand of max: the check is of the other one, off the chain of dependent instructions. Of zeros with
// different signs either may result.
KernelEmitter::Value* KernelEmitter::float_extreme(bool is_max, Value* a, Value* b) {
  auto is_number = [](Value* v) {
    auto* constant = llvm::dyn_cast<llvm::Constant>(v);
    if (!constant) return false;
    if (v->getType()->isVectorTy()) constant = constant->getSplatValue();
    auto* fp = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
    return fp && !fp->isNaN();
  };
  auto larger = [&](Value* x, Value* y) {
    return builder_.CreateSelect(is_max ? builder_.CreateFCmpOGT(x, y) : builder_.CreateFCmpOLT(x, y), x, y);
  };
  if (is_number(a)) return larger(a, b);
  if (is_number(b)) return larger(b, a);
  Value* result = vector_extreme(is_max, b, a);
  return builder_.CreateSelect(builder_.CreateFCmpUNO(b, b), b, result ? result : larger(b, a));
}

// `x > y ? x : y` (or <) as the instruction itself, where vectors have one: as comparison and selection it
// would be merged with the selection that follows into a longer chain. Null where there is none.
KernelEmitter::Value* KernelEmitter::vector_extreme(bool is_max, Value* x, Value* y) {
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (!isa_.x86 || !type) return nullptr;
  namespace intrinsic = llvm::Intrinsic;
  bool single = type->getElementType()->isFloatTy();
  auto pick = [&](intrinsic::ID max_ps, intrinsic::ID min_ps, intrinsic::ID max_pd, intrinsic::ID min_pd) {
    return single ? (is_max ? max_ps : min_ps) : (is_max ? max_pd : min_pd);
  };
  intrinsic::ID id;
  std::vector<Value*> args{x, y};
  switch (type->getPrimitiveSizeInBits().getFixedValue()) {
    case 128:
      id = pick(intrinsic::x86_sse_max_ps, intrinsic::x86_sse_min_ps, intrinsic::x86_sse2_max_pd,
                intrinsic::x86_sse2_min_pd);
      break;
    case 256:
      if (!isa_.avx) return nullptr;
      id = pick(intrinsic::x86_avx_max_ps_256, intrinsic::x86_avx_min_ps_256, intrinsic::x86_avx_max_pd_256,
                intrinsic::x86_avx_min_pd_256);
      break;
    case 512:
      if (!isa_.avx512) return nullptr;
      id = pick(intrinsic::x86_avx512_max_ps_512, intrinsic::x86_avx512_min_ps_512,
                intrinsic::x86_avx512_max_pd_512, intrinsic::x86_avx512_min_pd_512);
      args.push_back(builder_.getInt32(4));  // exceptions as the environment has them
      break;
    default:
      return nullptr;
  }
  return builder_.CreateIntrinsic(id, {}, args);
}

// fmod is exact and has the dividend's sign; mod moves it into the divisor's range.
KernelEmitter::Value* KernelEmitter::float_remainder(BinaryOp op, Value* a, Value* b) {
  llvm::Function* remainder = remainder_function(a->getType()->getScalarType());
  Value* r;
  if (a->getType()->isVectorTy()) {
    r = llvm::PoisonValue::get(a->getType());
    for (int i = 0; i < lanes_of(a); ++i) {
      auto lane = static_cast<uint64_t>(i);
      Value* one = builder_.CreateCall(
          remainder, {builder_.CreateExtractElement(a, lane), builder_.CreateExtractElement(b, lane)});
      r = builder_.CreateInsertElement(r, one, lane);
    }
  } else {
    r = builder_.CreateCall(remainder, {a, b});
  }
  if (op == BinaryOp::k_fmod) return r;
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* moved = builder_.CreateFAdd(r, b);
  Value* differs = builder_.CreateXor(builder_.CreateFCmpOLT(r, zero), builder_.CreateFCmpOLT(b, zero));
  Value* is_zero = builder_.CreateFCmpOEQ(r, zero);
  r = builder_.CreateSelect(builder_.CreateAnd(differs, builder_.CreateNot(is_zero)), moved, r);
  is_zero = builder_.CreateFCmpOEQ(r, zero);
  return builder_.CreateSelect(is_zero, builder_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, zero, b),
                               r);
}

// Long division of the mantissas, as many quotient bits per step as 64-bit integers allow: exact for all
// operands.
llvm::Function* KernelEmitter::remainder_function(llvm::Type* scalar) {
  bool is_f32 = scalar->isFloatTy();
  const char* name = is_f32 ? "remainder_f32" : "remainder_f64";
  if (llvm::Function* known = module_.getFunction(name)) return known;
  auto* f = llvm::Function::Create(llvm::FunctionType::get(scalar, {scalar, scalar}, false),
                                   llvm::GlobalValue::InternalLinkage, name, module_);
  f->addFnAttr(llvm::Attribute::NoInline);
  llvm::IRBuilder<> b(context_);
  auto block = [&](const char* label) { return llvm::BasicBlock::Create(context_, label, f); };
  llvm::BasicBlock* entry = block("entry");
  llvm::BasicBlock* invalid = block("invalid");
  llvm::BasicBlock* valid = block("valid");
  llvm::BasicBlock* smaller = block("smaller");
  llvm::BasicBlock* divide = block("divide");
  llvm::BasicBlock* step = block("step");
  llvm::BasicBlock* pack = block("pack");

  int mantissa_bits = is_f32 ? 23 : 52;
  int bits_per_step = 63 - mantissa_bits;
  llvm::Type* i64 = b.getInt64Ty();
  llvm::Type* bits_type = b.getIntNTy(scalar->getScalarSizeInBits());
  auto c = [&](uint64_t v) { return llvm::ConstantInt::get(i64, v); };
  uint64_t magnitude_mask = is_f32 ? 0x7fffffff : 0x7fffffffffffffff;
  uint64_t infinity = is_f32 ? 0x7f800000 : 0x7ff0000000000000;
  uint64_t implicit_one = uint64_t{1} << mantissa_bits;

  b.SetInsertPoint(entry);
  Value* x = b.CreateZExt(b.CreateBitCast(f->getArg(0), bits_type), i64);
  Value* y = b.CreateZExt(b.CreateBitCast(f->getArg(1), bits_type), i64);
  Value* sign = b.CreateAnd(x, c(magnitude_mask + 1));
  x = b.CreateAnd(x, c(magnitude_mask));
  y = b.CreateAnd(y, c(magnitude_mask));
  Value* bad = b.CreateOr(b.CreateICmpUGE(x, c(infinity)),
                          b.CreateOr(b.CreateICmpUGT(y, c(infinity)), b.CreateICmpEQ(y, c(0))));
  b.CreateCondBr(bad, invalid, valid);
  b.SetInsertPoint(invalid);
  b.CreateRet(llvm::ConstantFP::getNaN(scalar));
  b.SetInsertPoint(valid);
  b.CreateCondBr(b.CreateICmpULT(x, y), smaller, divide);
  b.SetInsertPoint(smaller);
  b.CreateRet(f->getArg(0));

  b.SetInsertPoint(divide);
  // m * 2^e with e >= 1; a denormal has no implicit one.
  auto unpack = [&](Value* v) {
    Value* e = b.CreateLShr(v, c(static_cast<uint64_t>(mantissa_bits)));
    Value* denormal = b.CreateICmpEQ(e, c(0));
    Value* m = b.CreateAnd(v, c(implicit_one - 1));
    return std::pair{b.CreateSelect(denormal, m, b.CreateOr(m, c(implicit_one))),
                     b.CreateSelect(denormal, c(1), e)};
  };
  auto [mx, ex] = unpack(x);
  auto [my, ey] = unpack(y);
  Value* first = b.CreateURem(mx, my);
  Value* distance = b.CreateSub(ex, ey);
  b.CreateCondBr(b.CreateICmpEQ(distance, c(0)), pack, step);
  b.SetInsertPoint(step);
  llvm::PHINode* rest = b.CreatePHI(i64, 2);
  llvm::PHINode* left = b.CreatePHI(i64, 2);
  rest->addIncoming(first, divide);
  left->addIncoming(distance, divide);
  Value* shift =
      b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, left, c(static_cast<uint64_t>(bits_per_step)));
  Value* next = b.CreateURem(b.CreateShl(rest, shift), my);
  Value* remaining = b.CreateSub(left, shift);
  rest->addIncoming(next, step);
  left->addIncoming(remaining, step);
  b.CreateCondBr(b.CreateICmpEQ(remaining, c(0)), pack, step)
      ->setMetadata(llvm::LLVMContext::MD_loop, loop_metadata());

  b.SetInsertPoint(pack);
  llvm::PHINode* r = b.CreatePHI(i64, 2);
  r->addIncoming(first, divide);
  r->addIncoming(next, step);
  Value* zeros_above = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, r, b.getFalse());
  Value* up = b.CreateSub(zeros_above, c(static_cast<uint64_t>(63 - mantissa_bits)));
  up = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, up, b.CreateSub(ey, c(1)));
  // The implicit one, if there is one, carries into the exponent.
  Value* exponent = b.CreateSub(b.CreateSub(ey, up), c(1));
  Value* bits =
      b.CreateAdd(b.CreateShl(r, up), b.CreateShl(exponent, c(static_cast<uint64_t>(mantissa_bits))));
  bits = b.CreateSelect(b.CreateICmpEQ(r, c(0)), c(0), bits);
  b.CreateRet(b.CreateBitCast(b.CreateTrunc(b.CreateOr(bits, sign), bits_type), scalar));
  return f;
}

}  // namespace quernel::codegen
