// The target's instructions: which operations are single instructions and need no expansion. Derived once per
// compilation from the target's facts and LLVM's subtarget features.
#pragma once

#include <llvm/IR/Type.h>

namespace quernel::codegen {

struct InstructionSet {
  // Instructions for one width of floats.
  struct Floats {
    bool fma = false;       // llvm.fma is an instruction; otherwise it would be a call
    bool rounding = false;  // floor, ceil, trunc, round to even
    bool sqrt = false;
  };

  bool x86 = false;
  Floats f32, f64;
  bool masks = false;            // masked loads and stores of any element size
  bool masks_of_words = false;   // masked loads and stores of 4- and 8-byte elements
  bool gather = false;           // gathers and scatters of 4- and 8-byte elements
  bool f16_conversion = false;   // f16 <-> f32
  bool f16_normals = false;      // the same, except that denormal halves may become zeros
  bool round_to_int = false;     // f32 to the nearest i32, ties to even
  bool ssse3 = false;            // shuffles of 16 bytes by indices in a vector: pshufb
  bool avx = false;              // 256-bit float vectors
  bool avx512 = false;           // vscalefps and other AVX-512F instructions
  bool avx2 = false;             // 256-bit integer vectors
  bool avx512_bw = false;        // 512-bit vectors of 16-bit elements
  bool vnni = false;             // int8 dot products, unsigned times signed: vpdpbusd
  bool avx512_bf16 = false;      // dot products of two bf16: vdpbf16ps
  bool arm_dsp = false;          // dot products of two 16-bit integers: smlad
  bool mve = false;              // multiply-add of a vector and a scalar register: vmla
  bool neon_tables = false;      // lookups in tables of 64 bytes: tbl
  bool neon_shifts = false;      // shifts of vectors of bytes: shl
  bool neon_fractions = false;   // i32 / 2^n as f32: scvtf
  bool neon_narrowing = false;   // to half the width, saturated: sqxtn, sqxtun
  bool neon_pairs = false;       // the sums of neighbouring lanes: addp
  bool neon_extremes = false;    // the extreme of all lanes, which is NaN if one is: fmaxv, fminv
  bool neon_dotprod = false;     // int8 dot products of equal signedness: sdot, udot
  bool neon_i8mm = false;        // int8 dot products, unsigned times signed: usdot
  bool narrow_indices = false;   // 32-bit registers
  bool whole_kernels = false;    // nothing runs a part of a kernel's workgroups
  bool wide_products = true;     // of 32-bit integers, 64 bits long
  bool wide_division = true;     // of 64-bit integers, also by a library
  bool wide_conversions = true;  // between 64-bit integers and floats, also by a library
  // If not 0, loops advance pointers (advance_pointers.h): the largest offset of a load, bytes, and the loads that share one.
  int64_t load_reach = 0;
  size_t loads_of_pointer = 1;
  int stack_alignment = 64;  // bytes, of buffers on the stack

  // `type`: float, double or a vector of them.
  const Floats& floats(const llvm::Type* type) const {
    return type->getScalarType()->isFloatTy() ? f32 : f64;
  }
};

}  // namespace quernel::codegen
