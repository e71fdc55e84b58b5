// Sine, cosine, tangent and their inverses. Angles are reduced in f64: by a three-part pi/2 up to 2^20,
// beyond that, in a branch, by integer multiplication with the bits of 2/pi that matter (Payne and Hanek), so
// that every finite argument is right.
#include <llvm/IR/Module.h>

#include "codegen/llvm/math_builder.h"
#include "codegen/llvm/math_coefficients.h"
#include "support/diagnostic.h"

namespace quernel::codegen {
namespace {
constexpr double kLargestSmallAngle = 0x1p20;
}

// x = quadrant * pi/2 + r. n * (first two parts) is exact for n below 2^20.
MathBuilder::ReducedAngle MathBuilder::reduce_angle(Value* x) {
  MathBuilder wide = in_f64();
  Value* y = is_f32_ ? b_.CreateFPExt(x, wide.type_) : x;
  Value* magic = wide.c(0x1.8p52);
  Value* shifted = add(mul(y, wide.c(0x1.45f306dc9c883p-1)), magic);
  Value* n = sub(shifted, magic);
  Value* r = sub(y, mul(n, wide.c(kPiOver2[0])));
  r = sub(r, mul(n, wide.c(kPiOver2[1])));
  r = sub(r, mul(n, wide.c(kPiOver2[2])));
  Value* quadrant = b_.CreateTrunc(wide.bits(shifted), int_type_);
  ReducedAngle small{is_f32_ ? b_.CreateFPTrunc(r, type_) : r, quadrant};
  Value* magnitude = abs(x);
  Value* is_large = b_.CreateAnd(less(c(kLargestSmallAngle), magnitude), less(magnitude, infinity()));
  return reduce_large_angles(x, is_large, small);
}

MathBuilder::ReducedAngle MathBuilder::reduce_large_angles(Value* x, Value* is_large, ReducedAngle small) {
  llvm::Function* slow = large_angles_function();
  llvm::Function* f = b_.GetInsertBlock()->getParent();
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* large = llvm::BasicBlock::Create(b_.getContext(), "large_angles", f);
  llvm::BasicBlock* join = llvm::BasicBlock::Create(b_.getContext(), "angles", f);
  Value* any = is_large->getType()->isVectorTy() ? b_.CreateOrReduce(is_large) : is_large;
  b_.CreateCondBr(any, large, join);
  b_.SetInsertPoint(large);
  llvm::CallInst* call = b_.CreateCall(slow, {x});
  Value* r = select(is_large, b_.CreateExtractValue(call, 0), small.r);
  Value* quadrant = select(is_large, b_.CreateExtractValue(call, 1), small.quadrant);
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* all_r = b_.CreatePHI(type_, 2);
  all_r->addIncoming(small.r, before);
  all_r->addIncoming(r, large);
  llvm::PHINode* all_quadrants = b_.CreatePHI(int_type_, 2);
  all_quadrants->addIncoming(small.quadrant, before);
  all_quadrants->addIncoming(quadrant, large);
  return {all_r, all_quadrants};
}

// {<n x T> r, <n x int> quadrant}(<n x T> x): lane by lane, right where |x| >= 2^20.
llvm::Function* MathBuilder::large_angles_function() {
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
  unsigned lanes = vector ? vector->getNumElements() : 1;
  std::string name =
      std::string(is_f32_ ? "large_angles_f32_x" : "large_angles_f64_x") + std::to_string(lanes);
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::Function* one = large_angle_function();
  auto* result_type = llvm::StructType::get(b_.getContext(), {type_, int_type_});
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result_type, {type_}, false),
                                   llvm::GlobalValue::InternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::Cold);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(b_.getContext(), "entry", f));
  Value* r = llvm::PoisonValue::get(type_);
  Value* quadrant = llvm::PoisonValue::get(int_type_);
  for (unsigned i = 0; i < lanes; ++i) {
    Value* x = vector ? b.CreateExtractElement(f->getArg(0), uint64_t{i}) : f->getArg(0);
    Value* pair = b.CreateCall(one, {b.CreateFPExt(x, b.getDoubleTy())});
    Value* lane_r = b.CreateFPTrunc(b.CreateExtractValue(pair, 0), type_->getScalarType());
    Value* lane_quadrant = b.CreateTrunc(b.CreateExtractValue(pair, 1), int_type_->getScalarType());
    r = vector ? b.CreateInsertElement(r, lane_r, uint64_t{i}) : lane_r;
    quadrant = vector ? b.CreateInsertElement(quadrant, lane_quadrant, uint64_t{i}) : lane_quadrant;
  }
  Value* result = b.CreateInsertValue(llvm::PoisonValue::get(result_type), r, 0);
  b.CreateRet(b.CreateInsertValue(result, quadrant, 1));
  return f;
}

// {double r, i64 quadrant}(double x). With x = m 2^e, m of 53 bits: 192 bits of 2/pi from weight 2^(2-e) on,
// times m, modulo 2^192: the two highest bits are the quadrant, the rest is the fraction, of which 128 bits
// are used.
llvm::Function* MathBuilder::large_angle_function() {
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  const char* name = "large_angle";
  if (llvm::Function* known = module.getFunction(name)) return known;
  llvm::LLVMContext& context = b_.getContext();
  llvm::Type* f64 = b_.getDoubleTy();
  llvm::Type* i64 = b_.getInt64Ty();
  auto* result_type = llvm::StructType::get(context, {f64, i64});
  auto* f = llvm::Function::Create(llvm::FunctionType::get(result_type, {f64}, false),
                                   llvm::GlobalValue::InternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::NoInline);
  auto* words = llvm::ConstantDataArray::get(context, llvm::ArrayRef<uint64_t>(kTwoOverPi));
  auto* table = new llvm::GlobalVariable(module, words->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                         words, "two_over_pi");
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", f));
  auto n = [&](uint64_t v) { return b.getInt64(v); };
  auto low_half = [&](Value* v) { return b.CreateAnd(v, n(0xffffffff)); };
  auto high_half = [&](Value* v) { return b.CreateLShr(v, 32); };
  // The upper 64 bits of a product.
  auto high_product = [&](Value* x, Value* y) {
    Value* cross = b.CreateMul(low_half(x), high_half(y));
    Value* other = b.CreateMul(high_half(x), low_half(y));
    Value* middle = b.CreateAdd(high_half(b.CreateMul(low_half(x), low_half(y))), low_half(cross));
    Value* carry = high_half(b.CreateAdd(middle, low_half(other)));
    Value* high = b.CreateAdd(b.CreateMul(high_half(x), high_half(y)), high_half(cross));
    return b.CreateAdd(b.CreateAdd(high, high_half(other)), carry);
  };

  Value* x = b.CreateBitCast(f->getArg(0), i64);
  Value* negative = b.CreateICmpSLT(x, n(0));
  Value* m = b.CreateOr(b.CreateAnd(x, n((uint64_t{1} << 52) - 1)), n(uint64_t{1} << 52));
  Value* exponent = b.CreateAnd(b.CreateLShr(x, 52), n(0x7ff));
  // The table starts with 64 zero bits, and 2/pi with weight 2^-1: bit 64 + (e - 2), e = exponent - 1075.
  // Lanes that are not large, whose result is unused, and infinities are kept inside the table.
  Value* offset = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, exponent, n(1075 - 62));
  offset = b.CreateSub(b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, offset, n(2046)), n(1075 - 62));
  Value* word = b.CreateLShr(offset, 6);
  Value* shift = b.CreateAnd(offset, n(63));
  Value* raw[4];
  for (uint64_t i = 0; i < 4; ++i)
    raw[i] = b.CreateAlignedLoad(i64, b.CreateGEP(i64, table, b.CreateAdd(word, n(i))), llvm::Align(8));
  Value* window[3];
  for (int i = 0; i < 3; ++i)
    window[i] = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {raw[i], raw[i + 1], shift});

  // r0 r1 r2, most significant first, of m * window modulo 2^192.
  Value* r2 = b.CreateMul(m, window[2]);
  Value* carried = high_product(m, window[2]);
  Value* r1 = b.CreateAdd(b.CreateMul(m, window[1]), carried);
  Value* carry = b.CreateZExt(b.CreateICmpULT(r1, carried), i64);
  Value* r0 = b.CreateAdd(b.CreateAdd(b.CreateMul(m, window[0]), high_product(m, window[1])), carry);
  Value* high_fraction = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {r0, r1, n(2)});
  Value* low_fraction = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {r1, r2, n(2)});
  // To the nearest multiple: a fraction of one half or more counts down from the next quadrant.
  Value* quadrant = b.CreateAdd(b.CreateLShr(r0, 62), b.CreateLShr(high_fraction, 63));
  Value* below = b.CreateICmpSLT(high_fraction, n(0));
  Value* borrow = b.CreateZExt(b.CreateICmpEQ(low_fraction, n(0)), i64);
  Value* high = b.CreateSelect(below, b.CreateAdd(b.CreateNot(high_fraction), borrow), high_fraction);
  Value* low = b.CreateSelect(below, b.CreateNeg(low_fraction), low_fraction);
  // The highest 64 bits that are set, scaled back by exponent arithmetic.
  auto leading_zeros = [&](Value* v) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, v, b.getFalse());
  };
  Value* in_high = b.CreateICmpNE(high, n(0));
  Value* low_zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, leading_zeros(low), n(63));
  Value* high_zeros = b.CreateAnd(leading_zeros(high), n(63));
  Value* zeros = b.CreateSelect(in_high, high_zeros, b.CreateAdd(low_zeros, n(64)));
  Value* shifted = b.CreateIntrinsic(llvm::Intrinsic::fshl, {i64}, {high, low, high_zeros});
  Value* top = b.CreateSelect(in_high, shifted, b.CreateShl(low, low_zeros));
  Value* value = b.CreateUIToFP(top, f64);
  Value* power = b.CreateShl(b.CreateSub(n(1023 - 64), zeros), 52);
  value = b.CreateFMul(value, b.CreateBitCast(power, f64));
  value = b.CreateFMul(value, llvm::ConstantFP::get(f64, 0x1.921fb54442d18p+0));
  Value* flip = b.CreateXor(below, negative);
  value = b.CreateSelect(flip, b.CreateFNeg(value), value);
  quadrant = b.CreateSelect(negative, b.CreateNeg(quadrant), quadrant);
  Value* result = b.CreateInsertValue(llvm::PoisonValue::get(result_type), value, 0);
  b.CreateRet(b.CreateInsertValue(result, quadrant, 1));
  return f;
}

MathBuilder::Value* MathBuilder::sin_cos_tan(UnaryOp op, Value* x) {
  ReducedAngle a = reduce_angle(x);
  Value* z = mul(a.r, a.r);
  Value* sine = odd_polynomial(is_f32_ ? Table(kF32Sin) : Table(kF64Sin), a.r, z);
  Value* cosine = mul(mul(z, z), polynomial(is_f32_ ? Table(kF32Cos) : Table(kF64Cos), z));
  // 1 - h + tail with the rounding error of 1 - h added back.
  Value* half = mul(z, c(0.5));
  Value* leading = sub(c(1.0), half);
  cosine = add(leading, add(sub(sub(c(1.0), leading), half), cosine));
  Value* odd = b_.CreateICmpNE(b_.CreateAnd(a.quadrant, ci(1)), ci(0));
  if (op == UnaryOp::k_tan) {
    Value* numerator = select(odd, cosine, sine);
    Value* denominator = select(odd, b_.CreateFNeg(sine), cosine);
    Value* tangent = div(numerator, denominator);
    return select(less(abs(x), pick(0x1p-13, 0x1p-28)), x, tangent);
  }
  Value* quadrant = op == UnaryOp::k_cos ? b_.CreateAdd(a.quadrant, ci(1)) : a.quadrant;
  Value* swapped = op == UnaryOp::k_cos ? b_.CreateNot(odd) : odd;
  Value* value = select(swapped, cosine, sine);
  Value* sign = b_.CreateShl(b_.CreateLShr(b_.CreateAnd(quadrant, ci(2)), ci(1)), ci(is_f32_ ? 31 : 63));
  value = from_bits(b_.CreateXor(bits(value), sign));
  return op == UnaryOp::k_sin ? select(less(abs(x), pick(0x1p-13, 0x1p-28)), x, value)
                              : value;  // -0, denormals
}

// Above tan(3 pi/8): pi/2 - atan(1/y); above tan(pi/8): pi/4 + atan((y-1)/(y+1)); one division for all.
MathBuilder::Value* MathBuilder::atan(Value* x) {
  Table pi = is_f32_ ? Table(kF32Pi) : Table(kF64Pi);
  Value* y = abs(x);
  Value* large = less(c(0x1.3504f333f9de6p+1), y);
  Value* medium = less(c(0x1.a827999fcef32p-2), y);
  Value* numerator = select(large, c(-1.0), select(medium, sub(y, c(1.0)), y));
  Value* denominator = select(large, y, select(medium, add(y, c(1.0)), c(1.0)));
  Value* high = select(large, c(pi[0] / 2), select(medium, c(pi[0] / 4), c(0.0)));
  Value* low = select(large, c(pi[1] / 2), select(medium, c(pi[1] / 4), c(0.0)));
  Value* r = div(numerator, denominator);
  Value* z = mul(r, r);
  Value* tail = mul_add(mul(r, z), polynomial(is_f32_ ? Table(kF32Atan) : Table(kF64Atan), z), low);
  return copy_sign(add(high, add(r, tail)), x);
}

// Above 1/2: pi/2 - 2 asin(sqrt((1 - y) / 2)), with what the square root lost added back.
MathBuilder::Value* MathBuilder::asin(Value* x) {
  Table pi = is_f32_ ? Table(kF32Pi) : Table(kF64Pi);
  Value* y = abs(x);
  Value* large = less(c(0.5), y);
  Value* z = select(large, mul(sub(c(1.0), y), c(0.5)), mul(y, y));
  Value* s = select(large, sqrt(z), y);
  Value* tail = mul(mul(s, z), polynomial(is_f32_ ? Table(kF32Asin) : Table(kF64Asin), z));
  Value* twice = add(s, s);
  Value* reflected = sub(c(pi[0] / 2), twice);
  Value* lost = sub(sub(c(pi[0] / 2), reflected), twice);
  reflected = add(reflected, add(lost, sub(c(pi[1] / 2), add(tail, tail))));
  return copy_sign(select(large, reflected, add(s, tail)), x);
}

MathBuilder::Value* MathBuilder::acos(Value* x) {
  Table pi = is_f32_ ? Table(kF32Pi) : Table(kF64Pi);
  Value* y = abs(x);
  Value* large = less(c(0.5), y);
  Value* z = select(large, mul(sub(c(1.0), y), c(0.5)), mul(y, y));
  Value* s = select(large, sqrt(z), x);
  Value* tail = mul(mul(s, z), polynomial(is_f32_ ? Table(kF32Asin) : Table(kF64Asin), z));
  Value* middle = sub(c(pi[0] / 2), sub(s, sub(c(pi[1] / 2), tail)));
  Value* positive = add(s, tail);
  positive = add(positive, positive);
  Value* twice = add(s, s);
  Value* negative = sub(c(pi[0]), sub(twice, sub(c(pi[1]), add(tail, tail))));
  return select(large, select(less(x, c(0.0)), negative, positive), middle);
}

}  // namespace quernel::codegen
