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

  // Atomics are in what the objects say of themselves, so that linkers take them: kernels have none.
  Target imac = imc;
  imac.name = "riscv32imac";
  imac.description = "RV32IMAC microcontrollers: as RV32IMC, with atomics";
  imac.features = "+m,+a,+c";

  // Calls pass floats in registers of the FPU (RISC-V calling conventions, ILP32F).
  Target imafc = imac;
  imafc.name = "riscv32imafc";
  imafc.description = "RV32IMAFC microcontrollers: single precision with fused multiply-add";
  imafc.features = "+m,+a,+f,+c";
  imafc.abi = "ilp32f";
  imafc.vector_registers = 32;
  imafc.has_f32 = imafc.has_fma = true;

  return {imc, imac, imafc};
}

}  // namespace quernel
