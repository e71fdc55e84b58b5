// Sums of four products of bytes in each 32-bit lane: one instruction where the target has it for the
// operands' signs, else two products of pairs of 16-bit elements, which are exact, or plain arithmetic. Sums
// of two products of bf16 likewise.
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsARM.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/kernel_emitter.h"

namespace quernel::codegen {
namespace {

// pmaddwd for so many words: the products of pairs of signed 16-bit elements, added.
llvm::Intrinsic::ID multiply_pairs(int lanes) {
  return lanes == 4   ? llvm::Intrinsic::x86_sse2_pmadd_wd
         : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                      : llvm::Intrinsic::x86_avx512_pmaddw_d_512;
}

}  // namespace

KernelEmitter::Value* KernelEmitter::dot(const loop::ExprNode& e) {
  if (e.type.dtype == DType::kF32) return dot_of_bf16(expr(e.args[0]), expr(e.args[1]), expr(e.args[2]));
  bool a_signed = e.args[0]->type.dtype == DType::kI32, b_signed = e.args[1]->type.dtype == DType::kI32;
  int lanes = e.type.lanes;
  bool by_element = isa_.neon_dotprod && lanes == 4 && e.args[0]->kind == loop::ExprKind::kBroadcast;
  // A word of a register stays where it is: LLVM finds its lane.
  if (by_element && e.args[0]->args[0]->kind == loop::ExprKind::kLoad)
    by_element = e.args[0]->args[0]->buffer->scope != loop::Scope::kRegister;
  Value* a = by_element ? neon_element(expr(e.args[0]->args[0])) : expr(e.args[0]);
  Value *b = expr(e.args[1]), *sum = expr(e.args[2]);
  if (e.type.dtype == DType::kU32) return dot_in_halves(a, a_signed, b, b_signed, sum);
  if (Value* result = dot_by_instruction(a, a_signed, b, b_signed, sum)) return result;
  bool pairs = isa_.x86 && (lanes == 4 || (lanes == 8 && isa_.avx2) || (lanes == 16 && isa_.avx512_bw));
  if (pairs) return dot_of_pairs(a, a_signed, b, b_signed, sum);
  if (isa_.arm_dsp && lanes == 1) return dot_of_halfwords(a, a_signed, b, b_signed, sum);
  for (uint64_t i = 0; i < 4; ++i)
    sum = builder_.CreateAdd(sum,
                             builder_.CreateMul(byte_of_word(a, i, a_signed), byte_of_word(b, i, b_signed)));
  return sum;
}

// Byte `i` of each word, counted from the lowest one, widened to the word. MVE multiplies by scalar registers: the byte of a
// word that is in all lanes stays a scalar.
KernelEmitter::Value* KernelEmitter::byte_of_word(Value* word, uint64_t i, bool is_signed) {
  const int lanes = lanes_of(word);
  Value* scalar = isa_.mve ? llvm::getSplatValue(word) : nullptr;
  if (scalar) word = scalar;
  Value* top = builder_.CreateShl(word, int_constant(word->getType(), 24 - 8 * i));
  llvm::Constant* down = int_constant(word->getType(), 24);
  Value* low = is_signed ? builder_.CreateAShr(top, down) : builder_.CreateLShr(top, down);
  return scalar ? splat(low, lanes) : low;
}

// Null where there is no instruction for these signs and lanes.
KernelEmitter::Value* KernelEmitter::dot_by_instruction(Value* a, bool a_signed, Value* b, bool b_signed,
                                                        Value* sum) {
  namespace intrinsic = llvm::Intrinsic;
  int lanes = lanes_of(sum);
  bool mixed = a_signed != b_signed;
  // The unsigned operand comes first; of two of a kind the second one may be an element.
  if (!mixed || a_signed) std::swap(a, b);
  llvm::Type* bytes = llvm::FixedVectorType::get(builder_.getInt8Ty(), static_cast<unsigned>(4 * lanes));
  if (isa_.vnni && mixed && (lanes == 4 || lanes == 8 || lanes == 16)) {
    intrinsic::ID id = lanes == 4   ? intrinsic::x86_avx512_vpdpbusd_128
                       : lanes == 8 ? intrinsic::x86_avx512_vpdpbusd_256
                                    : intrinsic::x86_avx512_vpdpbusd_512;
    return builder_.CreateIntrinsic(
        id, {sum, builder_.CreateBitCast(a, bytes), builder_.CreateBitCast(b, bytes)});
  }
  if ((mixed ? isa_.neon_i8mm : isa_.neon_dotprod) && (lanes == 2 || lanes == 4)) {
    intrinsic::ID id = mixed      ? intrinsic::aarch64_neon_usdot
                       : a_signed ? intrinsic::aarch64_neon_sdot
                                  : intrinsic::aarch64_neon_udot;
    return builder_.CreateIntrinsic(
        id, {sum->getType(), bytes},
        {sum, builder_.CreateBitCast(a, bytes), builder_.CreateBitCast(b, bytes)});
  }
  return nullptr;
}

// One instruction where the target has it for the operands' signs, else two products of words.
KernelEmitter::Value* KernelEmitter::dot_2x2(const loop::ExprNode& e) {
  namespace intrinsic = llvm::Intrinsic;
  bool a_signed = e.args[0]->type.dtype == DType::kI32, b_signed = e.args[1]->type.dtype == DType::kI32;
  Value *a = expr(e.args[0]), *b = expr(e.args[1]), *sum = expr(e.args[2]);
  if (isa_.neon_i8mm && (!a_signed || b_signed)) {  // of mixed signs the unsigned operand comes first
    const intrinsic::ID id = a_signed   ? intrinsic::aarch64_neon_smmla
                             : b_signed ? intrinsic::aarch64_neon_usmmla
                                        : intrinsic::aarch64_neon_ummla;
    llvm::Type* bytes = llvm::FixedVectorType::get(builder_.getInt8Ty(), 16);
    return builder_.CreateIntrinsic(
        id, {sum->getType(), bytes},
        {sum, builder_.CreateBitCast(a, bytes), builder_.CreateBitCast(b, bytes)});
  }
  for (int word : {0, 1}) {
    const int next = word + 2;
    Value* rows = builder_.CreateShuffleVector(a, llvm::ArrayRef<int>{word, word, next, next});
    Value* columns = builder_.CreateShuffleVector(b, llvm::ArrayRef<int>{word, next, word, next});
    if (Value* result = dot_by_instruction(rows, a_signed, columns, b_signed, sum)) {
      sum = result;
      continue;
    }
    for (uint64_t i = 0; i < 4; ++i)
      sum = builder_.CreateAdd(
          sum, builder_.CreateMul(byte_of_word(rows, i, a_signed), byte_of_word(columns, i, b_signed)));
  }
  return sum;
}

// Sums of two products in each half of a word: vpmaddubsw, whose saturation the IR rules out, or plain arithmetic.
KernelEmitter::Value* KernelEmitter::dot_in_halves(Value* a, bool a_signed, Value* b, bool b_signed,
                                                   Value* sum) {
  const int lanes = lanes_of(sum);
  if (vectors_of_words(lanes) && a_signed != b_signed) {
    if (a_signed) std::swap(a, b);  // the unsigned operand comes first
    llvm::Type* bytes = llvm::FixedVectorType::get(builder_.getInt8Ty(), static_cast<unsigned>(4 * lanes));
    llvm::Type* halves = llvm::FixedVectorType::get(builder_.getInt16Ty(), static_cast<unsigned>(2 * lanes));
    const llvm::Intrinsic::ID id = lanes == 4   ? llvm::Intrinsic::x86_ssse3_pmadd_ub_sw_128
                                   : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_ub_sw
                                                : llvm::Intrinsic::x86_avx512_pmaddubs_w_512;
    Value* products =
        builder_.CreateIntrinsic(id, {builder_.CreateBitCast(a, bytes), builder_.CreateBitCast(b, bytes)});
    return builder_.CreateBitCast(builder_.CreateAdd(builder_.CreateBitCast(sum, halves), products),
                                  sum->getType());
  }
  auto product = [&](uint64_t i) {
    return builder_.CreateMul(byte_of_word(a, i, a_signed), byte_of_word(b, i, b_signed));
  };
  llvm::Type* type = sum->getType();
  llvm::Constant* sixteen = int_constant(type, 16);
  Value* lower = builder_.CreateAdd(sum, builder_.CreateAdd(product(0), product(1)));
  Value* upper =
      builder_.CreateAdd(builder_.CreateLShr(sum, sixteen), builder_.CreateAdd(product(2), product(3)));
  return builder_.CreateOr(builder_.CreateAnd(lower, int_constant(type, 0xffff)),
                           builder_.CreateShl(upper, sixteen));
}

// The sum of the two signed halves of each word: one instruction where the target multiplies and adds such pairs. Null where
// `e`, a binary operation, is something else.
KernelEmitter::Value* KernelEmitter::sum_of_halves(const loop::ExprNode& e) {
  if (e.binary != BinaryOp::k_add || e.type.dtype != DType::kI32 || !vectors_of_words(e.type.lanes))
    return nullptr;
  auto shifted = [](const loop::Expr& x, BinaryOp op) -> loop::Expr {
    int64_t count = 0;
    const bool is_shift = x->kind == loop::ExprKind::kBinary && x->binary == op &&
                          loop::as_const_int(x->args[1], &count) && count == 16;
    return is_shift ? x->args[0] : nullptr;
  };
  for (size_t i : {0, 1}) {
    const loop::Expr upper = shifted(e.args[1 - i], BinaryOp::k_shr),
                     raised = shifted(e.args[i], BinaryOp::k_shr);
    const loop::Expr lower = raised ? shifted(raised, BinaryOp::k_shl) : nullptr;
    const bool is_var = upper && lower && upper->kind == loop::ExprKind::kVar;
    if (!is_var || lower->kind != loop::ExprKind::kVar || lower->var != upper->var) continue;
    const auto lanes = static_cast<unsigned>(e.type.lanes);
    llvm::Type* halves = llvm::FixedVectorType::get(builder_.getInt16Ty(), 2 * lanes);
    return builder_.CreateIntrinsic(multiply_pairs(e.type.lanes),
                                    {builder_.CreateBitCast(expr(lower), halves), int_constant(halves, 1)});
  }
  return nullptr;
}

// The sums of neighbouring lanes of two vectors: even and odd lanes, which two rounds of interleaving take apart, are added by
// one instruction of NEON (addp). Null where `even` and `odd` are something else.
KernelEmitter::Value* KernelEmitter::sum_of_neighbours(Value* even, Value* odd) {
  if (!isa_.neon_pairs || lanes_of(even) != 4 || !even->getType()->getScalarType()->isIntegerTy(32))
    return nullptr;
  struct Operands {
    Value *first = nullptr, *second = nullptr;
    bool operator==(const Operands&) const = default;
  };
  auto interleaved = [](Value* x, bool upper) {
    static constexpr int kLower[] = {0, 4, 1, 5}, kUpper[] = {2, 6, 3, 7};
    auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(x);
    const bool fits = shuffle && shuffle->getShuffleMask() == llvm::ArrayRef<int>(upper ? kUpper : kLower);
    return fits ? Operands{shuffle->getOperand(0), shuffle->getOperand(1)} : Operands{};
  };
  const Operands halves = interleaved(even, false);
  if (!halves.first || interleaved(odd, true) != halves) return nullptr;
  const Operands whole = interleaved(halves.first, false);
  if (!whole.first || interleaved(halves.second, true) != whole) return nullptr;
  return builder_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_addp, {even->getType()},
                                  {whole.first, whole.second});
}

// A scalar plus the products of all lanes of two vectors of 8-bit elements of one sign: an instruction of MVE. The
// intrinsic and no reduction of LLVM's, whose passes would gather the sums of a tile in a vector at each step. Null
// where `e` is something else.
KernelEmitter::Value* KernelEmitter::sum_of_lanes(const loop::ExprNode& e) {
  using loop::ExprKind;
  if (!isa_.mve || e.binary != BinaryOp::k_add || e.type != loop::Type{DType::kI32, 1}) return nullptr;
  for (size_t i : {1, 0}) {
    const loop::ExprNode& lanes = *e.args[i];
    if (lanes.kind != ExprKind::kReduceLanes || lanes.binary != BinaryOp::k_add) continue;
    const loop::ExprNode& products = *lanes.args[0];
    if (products.kind != ExprKind::kBinary || products.binary != BinaryOp::k_mul) continue;
    const loop::Expr &a = products.args[0], &b = products.args[1];
    if (a->kind != ExprKind::kCast || b->kind != ExprKind::kCast) continue;
    const loop::Type bytes = a->args[0]->type;
    constexpr int kLanes = 16;
    if (bytes.lanes != kLanes || !is_byte(bytes.dtype) || b->args[0]->type != bytes) continue;
    Value *sum = expr(e.args[1 - i]), *left = expr(a->args[0]), *right = expr(b->args[0]);
    return builder_.CreateIntrinsic(llvm::Intrinsic::arm_mve_vmldava, {left->getType()},
                                    {builder_.getInt32(bytes.dtype == DType::kU8 ? 1 : 0),
                                     builder_.getInt32(0), builder_.getInt32(0), sum, left, right});
  }
  return nullptr;
}

KernelEmitter::Value* KernelEmitter::dot_of_bf16(Value* a, Value* b, Value* sum) {
  namespace intrinsic = llvm::Intrinsic;
  int lanes = lanes_of(sum);
  if (isa_.avx512_bf16 && (lanes == 4 || lanes == 8 || lanes == 16)) {
    intrinsic::ID id = lanes == 4   ? intrinsic::x86_avx512bf16_dpbf16ps_128
                       : lanes == 8 ? intrinsic::x86_avx512bf16_dpbf16ps_256
                                    : intrinsic::x86_avx512bf16_dpbf16ps_512;
    llvm::Type* halves = llvm::FixedVectorType::get(builder_.getBFloatTy(), static_cast<unsigned>(2 * lanes));
    return builder_.CreateIntrinsic(
        id, {sum, builder_.CreateBitCast(a, halves), builder_.CreateBitCast(b, halves)});
  }
  for (bool upper : {true, false}) {
    auto half = [&](Value* word) {
      Value* bits = upper ? builder_.CreateAnd(word, int_constant(word->getType(), 0xffff0000))
                          : builder_.CreateShl(word, int_constant(word->getType(), 16));
      return builder_.CreateBitCast(bits, sum->getType());
    };
    sum = builder_.CreateFAdd(builder_.CreateFMul(half(a), half(b)), sum);  // the product is exact
  }
  return sum;
}

// A word in all lanes, as sdot reads it from lane 0 of a register. LLVM would make a load and a broadcast one
// instruction (ld1r), which keeps a multiplier busy and has no offset in its address: the fence hides the
// load.
KernelEmitter::Value* KernelEmitter::neon_element(Value* word) {
  llvm::Type* floats = llvm::FixedVectorType::get(builder_.getFloatTy(), 4);
  llvm::Type* words = llvm::FixedVectorType::get(builder_.getInt32Ty(), 4);
  Value* lane = builder_.CreateInsertElement(
      llvm::PoisonValue::get(floats), builder_.CreateBitCast(word, builder_.getFloatTy()), uint64_t{0});
  lane = builder_.CreateIntrinsic(llvm::Intrinsic::arithmetic_fence, {floats}, {lane});
  return builder_.CreateShuffleVector(builder_.CreateBitCast(lane, words), llvm::ArrayRef<int>{0, 0, 0, 0});
}

// Bytes 0 and 2, then 1 and 3, widened to halves of a word.
KernelEmitter::Value* KernelEmitter::dot_of_halfwords(Value* a, bool a_signed, Value* b, bool b_signed,
                                                      Value* sum) {
  namespace intrinsic = llvm::Intrinsic;
  auto halves = [&](Value* word, bool is_signed, bool odd) -> Value* {
    if (odd)
      word = builder_.CreateIntrinsic(intrinsic::fshr, {word->getType()}, {word, word, builder_.getInt32(8)});
    return builder_.CreateIntrinsic(is_signed ? intrinsic::arm_sxtb16 : intrinsic::arm_uxtb16, {}, {word});
  };
  for (bool odd : {false, true})
    sum = builder_.CreateIntrinsic(intrinsic::arm_smlad, {},
                                   {halves(a, a_signed, odd), halves(b, b_signed, odd), sum});
  return sum;
}

// Even and odd bytes, widened in place.
KernelEmitter::Value* KernelEmitter::dot_of_pairs(Value* a, bool a_signed, Value* b, bool b_signed,
                                                  Value* sum) {
  auto lanes = static_cast<unsigned>(lanes_of(sum));
  llvm::Type* type = llvm::FixedVectorType::get(builder_.getInt16Ty(), 2 * lanes);
  llvm::Constant* eight = int_constant(type, 8);
  auto odd = [&](Value* words, bool is_signed) {
    return is_signed ? builder_.CreateAShr(words, eight) : builder_.CreateLShr(words, eight);
  };
  auto even = [&](Value* words, bool is_signed) {
    return is_signed ? builder_.CreateAShr(builder_.CreateShl(words, eight), eight)
                     : builder_.CreateAnd(words, int_constant(type, 255));
  };
  const llvm::Intrinsic::ID id = multiply_pairs(lanes_of(sum));
  a = builder_.CreateBitCast(a, type);
  b = builder_.CreateBitCast(b, type);
  Value* evens = builder_.CreateIntrinsic(id, {even(a, a_signed), even(b, b_signed)});
  Value* odds = builder_.CreateIntrinsic(id, {odd(a, a_signed), odd(b, b_signed)});
  return builder_.CreateAdd(builder_.CreateAdd(sum, evens), odds);
}

}  // namespace quernel::codegen
