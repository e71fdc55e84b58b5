# RV32IMAFC: single precision, passed in its registers, emulated as qemu's board virt.
set(QUERNEL_TARGET riscv32imafc)
set(QUERNEL_CPU_FLAGS "-march=rv32imafc -mabi=ilp32f")
set(QUERNEL_BOARD_CPU rv32,d=false)
include(${CMAKE_CURRENT_LIST_DIR}/riscv32-unknown-elf.cmake)
