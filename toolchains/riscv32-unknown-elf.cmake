# Shared by the toolchain files of 32-bit RISC-V: Debian's gcc-riscv64-unknown-elf, without a C library. They set
# QUERNEL_CPU_FLAGS and QUERNEL_BOARD_CPU: the core of qemu's board virt has no more than the target, and faults on the rest.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv32)
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_CXX_COMPILER riscv64-unknown-elf-g++)
set(CMAKE_ASM_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT "${QUERNEL_CPU_FLAGS} -mcmodel=medany -ffreestanding -ffunction-sections -fdata-sections")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -fno-exceptions -fno-rtti")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-nostartfiles -nostdlib -Wl,--gc-sections")
set(CMAKE_C_STANDARD_LIBRARIES -lgcc)
set(CMAKE_CXX_STANDARD_LIBRARIES -lgcc)
set(QUERNEL_BOARD virt-rv32)
set(QUERNEL_BOARD_CORE ${QUERNEL_TARGET})
set(CMAKE_CROSSCOMPILING_EMULATOR
  qemu-system-riscv32 -M virt -cpu ${QUERNEL_BOARD_CPU} -bios none -nographic -monitor none -serial none -icount shift=0
  -semihosting-config enable=on,target=native -kernel)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
