# RV32IMC without floating point, emulated as qemu's board virt.
set(QUERNEL_TARGET riscv32imc)
set(QUERNEL_CPU_FLAGS "-march=rv32imc -mabi=ilp32")
set(QUERNEL_BOARD_CPU rv32,a=false,f=false,d=false)
include(${CMAKE_CURRENT_LIST_DIR}/riscv32-unknown-elf.cmake)
