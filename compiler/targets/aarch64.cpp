// The AArch64 presets: any processor of the architecture, and cores that edge devices have. Cache sizes and
// multiply-adds per cycle are those of Arm's software optimization guides and technical reference manuals.
#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> aarch64_targets() {
  Target any;
  any.name = "aarch64";
  any.description = "any AArch64: NEON, 128-bit vectors";
  any.arch = QNL_ARCH_AARCH64;
  any.triple = "aarch64-unknown-linux-gnu";
  any.cpu = "generic";
  any.required_features = QNL_AARCH64_NEON;
  any.vector_bytes = 16;
  any.vector_registers = 32;
  any.has_fma = any.has_fma_lanes = true;
  any.has_f16 = true;
  any.l1_bytes = 32 << 10;
  any.l2_bytes = 512 << 10;
  any.peak_fma_per_cycle = 1;

  Target a53 = any;
  a53.name = "cortex-a53";
  a53.description = "Cortex-A53 (Raspberry Pi 3): in order, 128-bit vectors";
  a53.cpu = "cortex-a53";

  Target a72 = any;
  a72.name = "cortex-a72";
  a72.description = "Cortex-A72 (Raspberry Pi 4): out of order, 128-bit vectors";
  a72.cpu = "cortex-a72";
  a72.l2_bytes = 1 << 20;

  Target a76 = any;
  a76.name = "cortex-a76";
  a76.description = "Cortex-A76 (Raspberry Pi 5) and later: two multiply-adds a cycle, dot products";
  a76.cpu = "cortex-a76";
  a76.required_features = QNL_AARCH64_NEON | QNL_AARCH64_FP16 | QNL_AARCH64_DOTPROD;
  a76.l1_bytes = 64 << 10;
  a76.has_dot_s8_s8 = a76.has_dot_u8_u8 = a76.has_dot_words = true;
  a76.peak_fma_per_cycle = 2;

  // Kernels of such devices often hide SVE, so that nothing may need it.
  Target a710 = a76;
  a710.name = "cortex-a710";
  a710.description = "Cortex-A710, X2, A510 and later: dot products of mixed signs";
  a710.cpu = "cortex-a710";
  a710.features = "-sve,-sve2";
  a710.required_features |= QNL_AARCH64_I8MM;
  a710.has_dot_u8_s8 = a710.has_dot_2x2 = true;

  return {any, a53, a72, a76, a710};
}

}  // namespace quernel
