// Vectors of bytes looked up in a table of 256 bytes, which vector registers hold. Targets without such
// instructions load byte by byte (emit_load_store.cpp).
#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <array>

#include "codegen/llvm/kernel_emitter.h"

namespace quernel::codegen {

namespace {
constexpr int64_t kTableBytes = 256, kPartBytes = 16;
constexpr size_t kParts = kTableBytes / kPartBytes;
}  // namespace

KernelEmitter::Value* KernelEmitter::look_up_bytes(const loop::BufferNode& table,
                                                   const loop::ExprNode& index) {
  bool bytes = table.dtype == DType::kI8 || table.dtype == DType::kU8;
  if (!bytes || table.size != kTableBytes || index.kind != loop::ExprKind::kCast ||
      index.args[0]->type.dtype != DType::kU8)
    return nullptr;
  const int lanes = index.type.lanes;
  const bool shuffles =
      (lanes == 16 && isa_.ssse3) || (lanes == 32 && isa_.avx2) || (lanes == 64 && isa_.avx512_bw);
  if (!shuffles && !(lanes == 16 && isa_.neon_tables)) return nullptr;
  std::array<Value*, kParts> parts;
  auto* type = llvm::FixedVectorType::get(builder_.getInt8Ty(), kPartBytes);
  for (size_t i = 0; i < kParts; ++i)
    parts[i] = load_memory(
        table, type,
        element_pointer(table, int_constant(index_type(), static_cast<uint64_t>(i * kPartBytes)), true));
  Value* x = expr(index.args[0]);
  return shuffles ? look_up_by_shuffles(parts, x) : look_up_in_neon_tables(parts, x);
}

// pshufb gives table[x & 15], and 0 for x of 128 and more. For x below 128 the results of x, x - 16, x - 32, …
// that are not negative are combined by exclusive or: with each table replaced by its difference from the one
// before it, the last of them remains. Bytes from 128 on are looked up likewise, with 128 taken off.
KernelEmitter::Value* KernelEmitter::look_up_by_shuffles(llvm::ArrayRef<Value*> parts, Value* x) {
  namespace intrinsic = llvm::Intrinsic;
  const int lanes = lanes_of(x);
  const intrinsic::ID shuffle = lanes == 16   ? intrinsic::x86_ssse3_pshuf_b_128
                                : lanes == 32 ? intrinsic::x86_avx2_pshuf_b
                                              : intrinsic::x86_avx512_pshuf_b_512;
  std::vector<int> repeated(static_cast<size_t>(lanes));
  for (size_t i = 0; i < repeated.size(); ++i)
    repeated[i] = static_cast<int>(i) % static_cast<int>(kPartBytes);
  llvm::Type* type = x->getType();
  Value* sixteen = int_constant(type, 16);
  Value* result = nullptr;
  for (size_t half = 0; half < 2; ++half) {
    Value* at = half == 0 ? x : builder_.CreateXor(x, int_constant(type, 128));
    for (size_t i = 0; i < kParts / 2; ++i) {
      const size_t part = half * kParts / 2 + i;
      Value* difference = i == 0 ? parts[part] : builder_.CreateXor(parts[part], parts[part - 1]);
      Value* found =
          builder_.CreateIntrinsic(shuffle, {}, {builder_.CreateShuffleVector(difference, repeated), at});
      result = result ? builder_.CreateXor(result, found) : found;
      at = builder_.CreateBinaryIntrinsic(intrinsic::ssub_sat, at, sixteen);
    }
  }
  return result;
}

// tbl looks up in 64 bytes and gives 0 beyond them.
KernelEmitter::Value* KernelEmitter::look_up_in_neon_tables(llvm::ArrayRef<Value*> parts, Value* x) {
  Value* result = nullptr;
  for (size_t i = 0; i < kParts; i += 4) {
    Value* at = builder_.CreateSub(x, int_constant(x->getType(), i * kPartBytes));
    Value* found = builder_.CreateIntrinsic(llvm::Intrinsic::aarch64_neon_tbl4, {x->getType()},
                                            {parts[i], parts[i + 1], parts[i + 2], parts[i + 3], at});
    result = result ? builder_.CreateOr(result, found) : found;
  }
  return result;
}

}  // namespace quernel::codegen
