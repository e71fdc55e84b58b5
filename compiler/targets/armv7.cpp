// ARMv7-A Linux with hard-float calls. NEON there works on f32 and integers, and takes denormal f32 for
// zeros; f64 has scalar registers.
#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> armv7_targets() {
  Target any;
  any.name = "armv7";
  any.description = "32-bit Arm with NEON and VFPv4 (Cortex-A7 and later): 128-bit vectors";
  any.arch = QNL_ARCH_ARM;
  any.triple = "armv7-unknown-linux-gnueabihf";
  any.cpu = "cortex-a7";
  any.features = "+neon,+vfp4";
  any.required_features = QNL_ARM_THUMB2 | QNL_ARM_VFP4_SP | QNL_ARM_VFP4_DP | QNL_ARM_NEON | QNL_ARM_IDIV;
  any.vector_bytes = 16;
  any.vector_registers = 15;  // of 16: tiles that fill all of them are spilt
  any.has_fma = true;
  any.has_f16 = true;
  any.l1_bytes = 32 << 10;
  any.l2_bytes = 256 << 10;
  any.peak_fma_per_cycle = 1;

  Target a15 = any;
  a15.name = "cortex-a15";
  a15.description = "Cortex-A15, A17: out of order, 128-bit vectors";
  a15.cpu = "cortex-a15";
  a15.l2_bytes = 512 << 10;

  return {any, a15};
}

}  // namespace quernel
