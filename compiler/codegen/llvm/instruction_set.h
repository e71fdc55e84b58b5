// What the code generator asks a target: which operations are single instructions and must not be expanded by
// hand. Derived once per compilation from the target's facts and LLVM's subtarget features.
#pragma once

#include <llvm/IR/Type.h>

namespace quernel::codegen {

struct InstructionSet {
  // What there is for one width of floats.
  struct Floats {
    bool fma = false;       // llvm.fma is an instruction, else it would be a call
    bool rounding = false;  // floor, ceil, trunc, round to even
    bool sqrt = false;
  };

  bool x86 = false;
  Floats f32, f64;
  bool masks = false;            // masked loads and stores of any element size
  bool masks_of_words = false;   // masked loads and stores of 4- and 8-byte elements
  bool gather = false;           // gathers and scatters of 4- and 8-byte elements
  bool f16_conversion = false;   // f16 <-> f32
  bool f16_normals = false;      // the same, but that denormal halves may become zeros
  bool round_to_int = false;     // f32 to the nearest i32, even where there are two
  bool avx = false;              // 256-bit float vectors
  bool avx512 = false;           // vscalefps and other AVX-512F instructions
  bool avx2 = false;             // 256-bit integer vectors
  bool avx512_bw = false;        // 512-bit vectors of 16-bit elements
  bool vnni = false;             // sums of four products of unsigned and signed bytes: vpdpbusd
  bool avx512_bf16 = false;      // sums of two products of bf16: vdpbf16ps
  bool arm_dsp = false;          // two products of 16 bits added to a sum: smlad
  bool mve = false;              // a vector times a scalar register is added to a vector: vmla
  bool neon_dotprod = false;     // of bytes of one sign: sdot, udot
  bool neon_i8mm = false;        // of bytes of both: usdot
  bool narrow_indices = false;   // registers of 32 bits
  bool wide_division = true;     // of 64-bit integers, or a library brings it
  bool wide_conversions = true;  // between 64-bit integers and floats, or a library brings them
  int stack_alignment = 64;      // of buffers on the stack, bytes

  // `type`: float, double or a vector of them.
  const Floats& floats(const llvm::Type* type) const {
    return type->getScalarType()->isFloatTy() ? f32 : f64;
  }
};

}  // namespace quernel::codegen
