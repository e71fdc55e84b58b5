# RV32IMAC without floating point, emulated as qemu's board virt.
set(QUERNEL_TARGET riscv32imac)
set(QUERNEL_CPU_FLAGS "-march=rv32imac -mabi=ilp32")
set(QUERNEL_BOARD_CPU rv32,f=false,d=false)
include(${CMAKE_CURRENT_LIST_DIR}/riscv32-unknown-elf.cmake)
