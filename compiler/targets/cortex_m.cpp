// Cortex-M: kernels to be linked into firmware. What a core has beyond its architecture is optional in
// silicon; each preset takes what nearly all parts with that core have, so M7 has single precision. Sizes of
// first-level caches, or of the memory that takes their place, are typical ones: there is no second level.
#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> cortex_m_targets() {
  Target m0;
  m0.name = "cortex-m0";
  m0.description = "Cortex-M0: integer instructions only, floats by the toolchain's library";
  m0.arch = QNL_ARCH_ARM;
  m0.triple = "thumbv6m-unknown-none-eabi";
  m0.cpu = "cortex-m0";
  m0.vector_bytes = 4;
  m0.vector_registers = 8;
  m0.integer_registers = 7;  // LLVM sums one row after the other: it would spill the weights that rows share
  m0.has_f32 = m0.has_f64 = false;
  m0.l1_bytes = m0.l2_bytes = 16 << 10;
  m0.single_issue = true;
  m0.bare_metal = true;

  Target m0plus = m0;
  m0plus.name = "cortex-m0plus";
  m0plus.description = "Cortex-M0+: as M0, in two pipeline stages";
  m0plus.cpu = "cortex-m0plus";

  // Armv8-M Baseline (Armv8-M Architecture Reference Manual, B1): the instructions of Armv6-M, division, constants of
  // 16 bits, compare and branch. No products of 64 bits, no loads that are not aligned.
  Target m23 = m0;
  m23.name = "cortex-m23";
  m23.description =
      "Cortex-M23: Armv8-M Baseline, integers as M0 and division, floats by the toolchain's library";
  m23.triple = "thumbv8m.base-unknown-none-eabi";
  m23.cpu = "cortex-m23";

  // Armv7-M: Thumb-2 with products of 64 bits and multiply-accumulate, without the DSP extension and floating point
  // (Cortex-M3 Technical Reference Manual, 3.3). A load widens a signed byte and has an offset of 12 bits.
  Target m3 = m0;
  m3.name = "cortex-m3";
  m3.description = "Cortex-M3: 32-bit multiply-accumulate, floats by the toolchain's library";
  m3.triple = "thumbv7m-unknown-none-eabi";
  m3.cpu = "cortex-m3";
  m3.required_features = QNL_ARM_THUMB2;
  m3.integer_registers = 12;
  m3.loads_signed_bytes = true;

  Target m4 = m0;
  m4.name = "cortex-m4";
  m4.description = "Cortex-M4F: single precision with fused multiply-add";
  m4.triple = "thumbv7em-unknown-none-eabihf";
  m4.cpu = "cortex-m4";
  m4.required_features = QNL_ARM_THUMB2 | QNL_ARM_VFP4_SP | QNL_ARM_DSP;
  m4.vector_registers = 32;
  m4.integer_registers = 12;
  m4.has_dot_pairs = true;
  m4.has_f32 = m4.has_fma = m4.has_f16 = true;

  Target m7 = m4;
  m7.name = "cortex-m7";
  m7.description = "Cortex-M7: two instructions a cycle, single precision, caches";
  m7.cpu = "cortex-m7";
  m7.features = "-fp64";
  m7.single_issue = false;

  Target m33 = m4;
  m33.name = "cortex-m33";
  m33.description = "Cortex-M33: Armv8-M with DSP and single precision";
  m33.triple = "thumbv8m.main-unknown-none-eabihf";
  m33.cpu = "cortex-m33";

  Target m55 = m33;
  m55.name = "cortex-m55";
  m55.description = "Cortex-M55: vectors of 128 bits (Helium), half to double precision";
  m55.triple = "thumbv8.1m.main-unknown-none-eabihf";
  m55.cpu = "cortex-m55";
  m55.required_features |= QNL_ARM_VFP4_DP | QNL_ARM_MVE_INT | QNL_ARM_MVE_FP;
  m55.vector_bytes = 16;
  m55.vector_registers = 8;
  m55.integer_registers = 0;
  m55.has_dot_pairs = false;
  m55.has_f64 = true;
  m55.has_masks = true;
  m55.lane_sums = 7;         // vmladava's sum is in an even register; the loop counts in one of them
  m55.single_issue = false;  // vector instructions overlap with the next one

  Target m85 = m55;
  m85.name = "cortex-m85";
  m85.description = "Cortex-M85: two instructions a cycle, vectors as M55";
  m85.cpu = "cortex-m85";

  return {m0, m0plus, m23, m3, m4, m7, m33, m55, m85};
}

}  // namespace quernel
