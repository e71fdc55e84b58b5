// The x86-64 presets: the psABI's microarchitecture levels. Cache sizes are those of common server and
// desktop cores.
#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> x86_64_targets() {
  Target v1;
  v1.name = "x86-64";
  v1.description = "any x86-64: SSE2, 128-bit vectors";
  v1.arch = QNL_ARCH_X86_64;
  v1.triple = "x86_64-unknown-linux-gnu";
  v1.cpu = "x86-64";
  v1.required_features = QNL_X86_64_V1;
  v1.vector_bytes = 16;
  v1.vector_registers = 16;
  v1.l1_bytes = 32 << 10;
  v1.l2_bytes = 256 << 10;
  v1.peak_fma_per_cycle = 1;  // a multiply and an add issue together

  Target v2 = v1;
  v2.name = "x86-64-v2";
  v2.description = "x86-64 with SSE4.2 (2009 and later), 128-bit vectors";
  v2.cpu = "x86-64-v2";
  v2.required_features = QNL_X86_64_V2;
  v2.has_dot_halves = true;

  Target v3 = v2;
  v3.name = "x86-64-v3";
  v3.description = "x86-64 with AVX2, FMA and F16C (2013 and later), 256-bit vectors";
  v3.cpu = "x86-64-v3";
  v3.required_features = QNL_X86_64_V3;
  v3.vector_bytes = 32;
  v3.has_fma = true;
  v3.has_f16 = true;
  v3.l2_bytes = 512 << 10;
  v3.peak_fma_per_cycle = 2;

  Target v4 = v3;
  v4.name = "x86-64-v4";
  v4.description = "x86-64 with AVX-512 F, BW, CD, DQ and VL, 512-bit vectors";
  v4.cpu = "x86-64-v4";
  v4.required_features = QNL_X86_64_V4;
  v4.vector_bytes = 64;
  v4.vector_registers = 32;
  v4.has_masks = true;
  v4.has_gather = true;
  v4.l2_bytes = 1 << 20;

  Target vnni = v4;
  vnni.name = "x86-64-v4-vnni";
  vnni.description = "x86-64-v4 with AVX-512 VNNI (2019 and later): sums of products of bytes";
  vnni.features = llvm_flag(QNL_ARCH_X86_64, QNL_X86_64_AVX512_VNNI);
  vnni.required_features = QNL_X86_64_V4 | QNL_X86_64_AVX512_VNNI;
  vnni.has_dot_u8_s8 = true;

  return {v1, v2, v3, v4, vnni};
}

}  // namespace quernel
