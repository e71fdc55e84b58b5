// What the code generator asks a target: which operations are single instructions and must not be expanded by
// hand. Derived once per compilation from the target's facts and LLVM's subtarget features.
#pragma once

namespace quernel::codegen {

struct InstructionSet {
  bool x86 = false;
  bool fma = false;             // llvm.fma is an instruction, else it would be a call
  bool masks = false;           // masked loads and stores of any element size
  bool masks_of_words = false;  // masked loads and stores of 4- and 8-byte elements
  bool gather = false;          // gathers and scatters of 4- and 8-byte elements
  bool f16_conversion = false;  // f16 <-> f32
  bool rounding = false;        // floor, ceil, trunc, round to even
  bool avx = false;             // 256-bit float vectors
  bool avx512 = false;          // vscalefps and other AVX-512F instructions
  bool avx2 = false;            // 256-bit integer vectors
  bool avx512_bw = false;       // 512-bit vectors of 16-bit elements
  bool dot_u8_s8 = false;       // sums of four products of unsigned and signed bytes: vpdpbusd
};

}  // namespace quernel::codegen
