// The 64-bit RISC-V presets: any processor that runs Linux distributions (GC), and those with the vector
// extension, of which code uses registers of fixed length: the shortest that V allows, so that it runs on
// longer ones, too. Cache sizes are those of SiFive's U74 and SpacemiT's X60.
#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> riscv64_targets() {
  Target gc;
  gc.name = "riscv64";
  gc.description = "any RV64GC: no vectors";
  gc.arch = QNL_ARCH_RISCV64;
  gc.triple = "riscv64-unknown-linux-gnu";
  gc.cpu = "generic-rv64";
  gc.features = "+m,+a,+f,+d,+c";
  gc.required_features = QNL_RISCV_GC;
  gc.vector_bytes = 4;
  gc.vector_registers = 32;
  gc.has_fma = true;
  gc.l1_bytes = 32 << 10;
  gc.l2_bytes = 512 << 10;
  gc.peak_fma_per_cycle = 1;

  Target v = gc;
  v.name = "riscv64-v";
  v.description = "RV64GC with V 1.0: vectors of 128 bits, which longer registers hold, too";
  v.features = "+m,+a,+f,+d,+c,+v";
  v.required_features = QNL_RISCV_GC | QNL_RISCV_V;
  v.vector_bytes = 16;
  v.has_masks = true;
  v.has_gather = true;

  return {gc, v};
}

}  // namespace quernel
