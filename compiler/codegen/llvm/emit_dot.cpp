// Sums of four products of bytes in each 32-bit lane: one instruction where the target has it for the
// operands' signs, else two products of pairs of 16-bit elements, which are exact, or plain arithmetic.
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/kernel_emitter.h"

namespace quernel::codegen {

KernelEmitter::Value* KernelEmitter::dot(const loop::ExprNode& e) {
  bool a_signed = e.args[0]->type.dtype == DType::kI32, b_signed = e.args[1]->type.dtype == DType::kI32;
  Value *a = expr(e.args[0]), *b = expr(e.args[1]), *sum = expr(e.args[2]);
  int lanes = e.type.lanes;
  if (isa_.dot_u8_s8 && a_signed != b_signed && (lanes == 4 || lanes == 8 || lanes == 16)) {
    if (a_signed) std::swap(a, b);
    llvm::Intrinsic::ID id = lanes == 4   ? llvm::Intrinsic::x86_avx512_vpdpbusd_128
                             : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                          : llvm::Intrinsic::x86_avx512_vpdpbusd_512;
    llvm::Type* bytes = llvm::FixedVectorType::get(builder_.getInt8Ty(), static_cast<unsigned>(4 * lanes));
    return builder_.CreateIntrinsic(
        id, {sum, builder_.CreateBitCast(a, bytes), builder_.CreateBitCast(b, bytes)});
  }
  bool pairs = isa_.x86 && (lanes == 4 || (lanes == 8 && isa_.avx2) || (lanes == 16 && isa_.avx512_bw));
  if (pairs) return dot_of_pairs(a, a_signed, b, b_signed, sum);
  llvm::Type* type = sum->getType();
  for (uint64_t i = 0; i < 4; ++i) {
    auto byte = [&](Value* word, bool is_signed) {
      Value* top = builder_.CreateShl(word, int_constant(type, 24 - 8 * i));
      llvm::Constant* down = int_constant(type, 24);
      return is_signed ? builder_.CreateAShr(top, down) : builder_.CreateLShr(top, down);
    };
    sum = builder_.CreateAdd(sum, builder_.CreateMul(byte(a, a_signed), byte(b, b_signed)));
  }
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
  llvm::Intrinsic::ID id = lanes == 4   ? llvm::Intrinsic::x86_sse2_pmadd_wd
                           : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                        : llvm::Intrinsic::x86_avx512_pmaddw_d_512;
  a = builder_.CreateBitCast(a, type);
  b = builder_.CreateBitCast(b, type);
  Value* evens = builder_.CreateIntrinsic(id, {even(a, a_signed), even(b, b_signed)});
  Value* odds = builder_.CreateIntrinsic(id, {odd(a, a_signed), odd(b, b_signed)});
  return builder_.CreateAdd(builder_.CreateAdd(sum, evens), odds);
}

}  // namespace quernel::codegen
