// 32-bit RISC-V microcontrollers: kernels to be linked into firmware. Sizes as for Cortex-M.
#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> riscv32_targets() {
  Target imc;
  imc.name = "riscv32imc";
  imc.description = "RV32IMC microcontrollers: integer instructions only, floats by the toolchain's library";
  imc.arch = QNL_ARCH_RISCV32;
  imc.triple = "riscv32-unknown-none-elf";
  imc.cpu = "generic-rv32";
  imc.features = "+m,+c";
  imc.vector_bytes = 4;
  imc.vector_registers = 16;
  imc.integer_registers = 14;  // LLVM keeps products apart from their sums: more accumulators are spilled
  imc.has_f32 = imc.has_f64 = false;
  imc.l1_bytes = imc.l2_bytes = 16 << 10;
  imc.single_issue = imc.loads_signed_bytes = true;
  imc.bare_metal = true;
  return {imc};
}

}  // namespace quernel
