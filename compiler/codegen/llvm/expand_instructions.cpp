#include "codegen/llvm/expand_instructions.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/IntegerDivision.h>

#include <functional>
#include <string>
#include <vector>

namespace quernel::codegen {
namespace {

using llvm::Instruction;
using llvm::Value;

// A function of the module, of internal linkage, whose body `fill` writes at first use.
llvm::Function* function_named(llvm::Module& module, const std::string& name, llvm::FunctionType* type,
                               const std::function<void(llvm::Function&)>& fill) {
  if (llvm::Function* known = module.getFunction(name)) return known;
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, name, module);
  f->addFnAttr(llvm::Attribute::NoInline);
  llvm::BasicBlock::Create(module.getContext(), "entry", f);
  fill(*f);
  return f;
}

// ---- square root

// Digit by digit: two bits of the operand give one of the root; one more bit rounds, as no root lies between
// two floats.
void fill_square_root(llvm::Function& f) {
  llvm::Type* type = f.getReturnType();
  int mantissa = type->isFloatTy() ? 23 : 52, bias = type->isFloatTy() ? 127 : 1023;
  llvm::IRBuilder<> b(&f.getEntryBlock());
  llvm::LLVMContext& context = f.getContext();
  llvm::Type* i64 = b.getInt64Ty();
  llvm::Type* bits_type = b.getIntNTy(type->getScalarSizeInBits());
  auto c = [&](uint64_t v) { return llvm::ConstantInt::get(i64, v); };
  auto block = [&](const char* name) { return llvm::BasicBlock::Create(context, name, &f); };
  llvm::BasicBlock *special = block("special"), *finite = block("finite"), *digit = block("digit"),
                   *round = block("round");
  Value* x = f.getArg(0);
  uint64_t infinity = static_cast<uint64_t>(2 * bias + 1) << mantissa;
  Value* bits = b.CreateZExt(b.CreateBitCast(x, bits_type), i64);
  // Positive finite numbers: 0 < bits < infinity. What is negative has a larger pattern.
  Value* ordinary = b.CreateICmpULT(b.CreateSub(bits, c(1)), c(infinity - 1));
  b.CreateCondBr(ordinary, finite, special);

  b.SetInsertPoint(special);  // zeros, infinity and NaN are their own roots
  Value* negative = b.CreateFCmpOLT(x, llvm::Constant::getNullValue(type));
  b.CreateRet(b.CreateSelect(negative, llvm::ConstantFP::getNaN(type), x));

  b.SetInsertPoint(finite);
  Value* exponent = b.CreateLShr(bits, c(static_cast<uint64_t>(mantissa)));
  Value* fraction = b.CreateAnd(bits, c((uint64_t{1} << mantissa) - 1));
  Value* denormal = b.CreateICmpEQ(exponent, c(0));
  fraction = b.CreateSelect(denormal, fraction, b.CreateOr(fraction, c(uint64_t{1} << mantissa)));
  exponent = b.CreateSelect(denormal, c(1), exponent);
  // The leading one moves to bit 62, or to 63 where the exponent is odd.
  Value* zeros = b.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, fraction, b.getTrue());
  fraction = b.CreateLShr(b.CreateShl(fraction, zeros), c(1));
  exponent = b.CreateSub(exponent, b.CreateSub(zeros, c(static_cast<uint64_t>(63 - mantissa))));
  exponent = b.CreateSub(exponent, c(static_cast<uint64_t>(bias)));
  fraction = b.CreateShl(fraction, b.CreateAnd(exponent, c(1)));
  exponent = b.CreateAdd(b.CreateAShr(exponent, c(1)), c(static_cast<uint64_t>(bias - 1)));
  b.CreateBr(digit);

  b.SetInsertPoint(digit);
  auto phi = [&](Value* first) {
    llvm::PHINode* node = b.CreatePHI(i64, 2);
    node->addIncoming(first, finite);
    return node;
  };
  llvm::PHINode *root = phi(c(0)), *rest = phi(c(0)), *left = phi(fraction), *count = phi(c(0));
  Value* taken = b.CreateOr(b.CreateShl(rest, c(2)), b.CreateLShr(left, c(62)));
  Value* trial = b.CreateOr(b.CreateShl(root, c(2)), c(1));
  Value* one = b.CreateICmpUGE(taken, trial);
  Value* next_root = b.CreateOr(b.CreateShl(root, c(1)), b.CreateZExt(one, i64));
  Value* next_count = b.CreateAdd(count, c(1));
  root->addIncoming(next_root, digit);
  rest->addIncoming(b.CreateSelect(one, b.CreateSub(taken, trial), taken), digit);
  left->addIncoming(b.CreateShl(left, c(2)), digit);
  count->addIncoming(next_count, digit);
  b.CreateCondBr(b.CreateICmpEQ(next_count, c(static_cast<uint64_t>(mantissa + 2))), round, digit);

  b.SetInsertPoint(round);
  Value* rounded = b.CreateAdd(b.CreateLShr(next_root, c(1)), b.CreateAnd(next_root, c(1)));
  // The root's own leading one adds to the exponent.
  Value* result = b.CreateAdd(b.CreateShl(exponent, c(static_cast<uint64_t>(mantissa))), rounded);
  b.CreateRet(b.CreateBitCast(b.CreateTrunc(result, bits_type), type));
}

// ---- conversions of 64-bit integers, by way of double

void fill_from_integer(llvm::Function& f, bool is_signed) {
  llvm::IRBuilder<> b(&f.getEntryBlock());
  llvm::Type* f64 = b.getDoubleTy();
  Value* x = f.getArg(0);
  if (f.getReturnType()->isFloatTy()) x = fold_low_bits(b, x, is_signed);
  Value* high = b.CreateTrunc(b.CreateLShr(x, 32), b.getInt32Ty());
  Value* upper = is_signed ? b.CreateSIToFP(high, f64) : b.CreateUIToFP(high, f64);
  Value* lower = b.CreateUIToFP(b.CreateTrunc(x, b.getInt32Ty()), f64);
  Value* sum = b.CreateFAdd(b.CreateFMul(upper, llvm::ConstantFP::get(f64, 0x1p32)), lower);
  b.CreateRet(f.getReturnType()->isFloatTy() ? b.CreateFPTrunc(sum, b.getFloatTy()) : sum);
}

// Truncates and saturates; NaN gives 0. Both halves are exact in double.
void fill_to_integer(llvm::Function& f, bool is_signed) {
  llvm::IRBuilder<> b(&f.getEntryBlock());
  llvm::Type *f64 = b.getDoubleTy(), *i32 = b.getInt32Ty(), *i64 = b.getInt64Ty();
  auto number = [&](double v) { return llvm::ConstantFP::get(f64, v); };
  Value* x = f.getArg(0)->getType()->isFloatTy() ? b.CreateFPExt(f.getArg(0), f64) : f.getArg(0);
  Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  double limit = is_signed ? 0x1p63 : 0x1p64;
  Value* in_range = b.CreateFCmpOLT(magnitude, number(limit));  // NaN is not
  Value* safe = b.CreateSelect(in_range, magnitude, number(0));
  Value* high = b.CreateFPToUI(b.CreateFMul(safe, number(0x1p-32)), i32);
  Value* rest = b.CreateFSub(safe, b.CreateFMul(b.CreateUIToFP(high, f64), number(0x1p32)));
  Value* low = b.CreateFPToUI(rest, i32);
  Value* whole = b.CreateOr(b.CreateShl(b.CreateZExt(high, i64), 32), b.CreateZExt(low, i64));
  Value* negative = b.CreateFCmpOLT(x, number(0));
  Value* smallest = is_signed ? b.getInt64(uint64_t{1} << 63) : b.getInt64(0);
  Value* largest = is_signed ? b.getInt64(INT64_MAX) : b.getInt64(UINT64_MAX);
  Value* converted = b.CreateSelect(negative, is_signed ? b.CreateNeg(whole) : b.getInt64(0), whole);
  Value* saturated = b.CreateSelect(negative, smallest, largest);
  saturated = b.CreateSelect(b.CreateFCmpUNO(x, x), b.getInt64(0), saturated);
  b.CreateRet(b.CreateSelect(in_range, converted, saturated));
}

// ---- division

// One instruction, which LLVM's own utility expands into a loop over the bits.
void fill_division(llvm::Function& f, Instruction::BinaryOps op) {
  llvm::IRBuilder<> b(&f.getEntryBlock());
  auto* division = llvm::cast<llvm::BinaryOperator>(b.CreateBinOp(op, f.getArg(0), f.getArg(1)));
  b.CreateRet(division);
  if (op == Instruction::UDiv || op == Instruction::SDiv)
    llvm::expandDivisionUpTo64Bits(division);
  else
    llvm::expandRemainderUpTo64Bits(division);
}

// The function that replaces an instruction, null where the target has it.
llvm::Function* replacement(Instruction& instruction, const InstructionSet& isa) {
  llvm::Module& module = *instruction.getModule();
  llvm::Type* to = instruction.getType()->getScalarType();
  auto declare = [&](const std::string& name, std::vector<llvm::Type*> operands,
                     const std::function<void(llvm::Function&)>& fill) {
    return function_named(module, name, llvm::FunctionType::get(to, operands, false), fill);
  };
  auto operand_type = [&] { return instruction.getOperand(0)->getType()->getScalarType(); };
  auto width_name = [](const llvm::Type* type) { return type->isFloatTy() ? "f32" : "f64"; };
  switch (instruction.getOpcode()) {
    case Instruction::UDiv:
    case Instruction::SDiv:
    case Instruction::URem:
    case Instruction::SRem: {
      if (isa.wide_division || !to->isIntegerTy(64)) return nullptr;
      auto op = static_cast<Instruction::BinaryOps>(instruction.getOpcode());
      return declare(std::string(instruction.getOpcodeName()) + "_i64", {to, to},
                     [op](llvm::Function& f) { fill_division(f, op); });
    }
    case Instruction::SIToFP:
    case Instruction::UIToFP: {
      if (isa.wide_conversions || !operand_type()->isIntegerTy(64)) return nullptr;
      bool is_signed = instruction.getOpcode() == Instruction::SIToFP;
      return declare(std::string(width_name(to)) + (is_signed ? "_of_i64" : "_of_u64"), {operand_type()},
                     [=](llvm::Function& f) { fill_from_integer(f, is_signed); });
    }
    case Instruction::Call:
      break;
    default:
      return nullptr;
  }
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!call) return nullptr;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::sqrt:
      if (isa.floats(to).sqrt) return nullptr;
      return declare(std::string("sqrt_") + width_name(to), {to}, fill_square_root);
    case llvm::Intrinsic::fptosi_sat:
    case llvm::Intrinsic::fptoui_sat: {
      if (isa.wide_conversions || !to->isIntegerTy(64)) return nullptr;
      bool is_signed = call->getIntrinsicID() == llvm::Intrinsic::fptosi_sat;
      return declare(std::string(is_signed ? "i64_of_" : "u64_of_") + width_name(operand_type()),
                     {operand_type()}, [=](llvm::Function& f) { fill_to_integer(f, is_signed); });
    }
    default:
      return nullptr;
  }
}

void replace(Instruction& instruction, llvm::Function* function) {
  llvm::IRBuilder<> b(&instruction);
  std::vector<Value*> operands;
  for (unsigned i = 0; i < function->arg_size(); ++i) operands.push_back(instruction.getOperand(i));
  Value* result;
  if (auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(instruction.getType())) {
    result = llvm::PoisonValue::get(vector);
    for (uint64_t lane = 0; lane < vector->getNumElements(); ++lane) {
      std::vector<Value*> elements;
      for (Value* operand : operands) elements.push_back(b.CreateExtractElement(operand, lane));
      result = b.CreateInsertElement(result, b.CreateCall(function, elements), lane);
    }
  } else {
    result = b.CreateCall(function, operands);
  }
  instruction.replaceAllUsesWith(result);
  instruction.eraseFromParent();
}

// LLVM 22 takes the sign of a widened half from the half itself, for which a Cortex-M with halves has no
// instruction to select. True where it was one, which is gone then.
bool copy_sign_by_bits(Instruction& instruction) {
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (!call || call->getIntrinsicID() != llvm::Intrinsic::copysign) return false;
  llvm::IRBuilder<> b(call);
  llvm::Type* type = call->getType();
  const unsigned width = type->getScalarSizeInBits();
  llvm::Type* integer = type->getWithNewType(b.getIntNTy(width));
  Value* sign = llvm::ConstantInt::get(integer, llvm::APInt::getSignMask(width));
  Value* magnitude = llvm::ConstantInt::get(integer, llvm::APInt::getSignedMaxValue(width));
  Value* bits = b.CreateOr(b.CreateAnd(b.CreateBitCast(call->getArgOperand(0), integer), magnitude),
                           b.CreateAnd(b.CreateBitCast(call->getArgOperand(1), integer), sign));
  call->replaceAllUsesWith(b.CreateBitCast(bits, type));
  call->eraseFromParent();
  return true;
}

// The i32 that is widened to the i64 `x` with its sign; null if x is not one.
Value* widened(Value* x) {
  if (auto* constant = llvm::dyn_cast<llvm::ConstantInt>(x)) {
    if (!constant->getValue().isSignedIntN(32)) return nullptr;
    return llvm::ConstantInt::get(llvm::Type::getInt32Ty(x->getContext()),
                                  constant->getValue().trunc(32).getZExtValue());
  }
  auto* zero_extended = llvm::dyn_cast<llvm::ZExtInst>(x);
  if (!llvm::isa<llvm::SExtInst>(x) && !(zero_extended && zero_extended->hasNonNeg())) return nullptr;
  Value* narrow = llvm::cast<llvm::CastInst>(x)->getOperand(0);
  return narrow->getType()->isIntegerTy(32) ? narrow : nullptr;
}

// The upper half of the product of two i32, from products of their halves. Source: Warren, Hacker's Delight, second
// edition, 8-2.
Value* upper_half(llvm::IRBuilder<>& b, Value* x, Value* y) {
  auto low = [&](Value* v) { return b.CreateAnd(v, b.getInt32(0xffff)); };
  auto high = [&](Value* v) { return b.CreateAShr(v, 16); };
  Value* middle = b.CreateAdd(b.CreateMul(high(x), low(y)), b.CreateLShr(b.CreateMul(low(x), low(y)), 16));
  Value* other = b.CreateAdd(b.CreateMul(low(x), high(y)), low(middle));
  return b.CreateAdd(b.CreateAdd(b.CreateMul(high(x), high(y)), high(middle)), high(other));
}

// Half of a product of 64 bits that would be a call. True where the instruction was one, which is gone then.
bool multiply_by_halves(Instruction& instruction) {
  constexpr uint64_t kWord = 32;
  auto* half = llvm::dyn_cast<llvm::TruncInst>(&instruction);
  auto* shift = half ? llvm::dyn_cast<llvm::BinaryOperator>(half->getOperand(0)) : nullptr;
  if (!shift || !half->getType()->isIntegerTy(kWord) || !shift->getType()->isIntegerTy(2 * kWord))
    return false;
  const bool is_arithmetic = shift->getOpcode() == Instruction::AShr;
  auto* count = llvm::dyn_cast<llvm::ConstantInt>(shift->getOperand(1));
  auto* product = llvm::dyn_cast<llvm::BinaryOperator>(shift->getOperand(0));
  if ((!is_arithmetic && shift->getOpcode() != Instruction::LShr) || !count || !product ||
      product->getOpcode() != Instruction::Mul)
    return false;
  const uint64_t bits = count->getZExtValue();
  Value *x = widened(product->getOperand(0)), *y = widened(product->getOperand(1));
  if (bits < kWord || bits >= 2 * kWord || (bits > kWord && !is_arithmetic) || !x || !y) return false;
  llvm::IRBuilder<> b(half);
  half->replaceAllUsesWith(b.CreateAShr(upper_half(b, x, y), bits - kWord));
  half->eraseFromParent();
  return true;
}

// Loop strength reduction, which runs later, knows quotients as expressions and may compute narrow ones by
// dividing 64-bit numbers. It does not look behind this intrinsic, which becomes no code.
void hide_quotient(Instruction& division) {
  llvm::IRBuilder<> b(division.getNextNode());
  Value* hidden = b.CreateIntrinsic(llvm::Intrinsic::expect, {division.getType()}, {&division, &division});
  division.replaceUsesWithIf(hidden, [&](const llvm::Use& use) { return use.getUser() != hidden; });
}

}  // namespace

llvm::Value* fold_low_bits(llvm::IRBuilderBase& b, llvm::Value* x, bool is_signed) {
  auto c = [&](uint64_t v) { return llvm::ConstantInt::get(x->getType(), v); };
  Value* low = b.CreateAnd(x, c(0xfff));
  Value* sticky = b.CreateSelect(b.CreateICmpNE(low, c(0)), c(0x800), c(0));
  Value* folded = b.CreateOr(b.CreateAnd(x, c(~uint64_t{0xfff})), sticky);
  Value* magnitude = is_signed ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, x, b.getFalse()) : x;
  return b.CreateSelect(b.CreateICmpUGE(magnitude, c(uint64_t{1} << 52)), folded, x);
}

void expand_missing_instructions(llvm::Module& module, const InstructionSet& isa) {
  std::vector<Instruction*> all;
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (Instruction& instruction : block) all.push_back(&instruction);
  for (Instruction* instruction : all) {
    if (isa.mve && copy_sign_by_bits(*instruction)) continue;
    if (!isa.wide_products && multiply_by_halves(*instruction)) continue;
    if (llvm::Function* function = replacement(*instruction, isa))
      replace(*instruction, function);
    else if (!isa.wide_division && instruction->isIntDivRem() && instruction->getType()->isIntegerTy())
      hide_quotient(*instruction);
  }
}

}  // namespace quernel::codegen
