// ARMv7-A Linux with hard-float calls. NEON there works on f32 and integers; f64 has scalar registers.
#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> armv7_targets() {
  Target any;
  any.name = "armv7";
  any.description = "32-bit Arm with NEON and VFPv4 (Cortex-A7 and later): 128-bit vectors";
  any.arch = Arch::kArm;
  any.triple = "armv7-unknown-linux-gnueabihf";
  any.cpu = "cortex-a7";
  any.features = "+neon,+vfp4";
  any.required_features = QNL_ARM_THUMB2 | QNL_ARM_VFP4_SP | QNL_ARM_VFP4_DP | QNL_ARM_NEON;
  any.vector_bytes = 16;
  any.vector_registers = 16;
  any.has_fma = true;
  any.has_f16 = true;
  any.l1_bytes = 32 << 10;
  any.l2_bytes = 256 << 10;
  any.peak_fma_per_cycle = 1;
  return {any};
}

}  // namespace quernel
