# RV32IMC without floating point, emulated as qemu's board virt: Debian's gcc-riscv64-unknown-elf, without a C library.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR riscv32)
set(CMAKE_C_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_CXX_COMPILER riscv64-unknown-elf-g++)
set(CMAKE_ASM_COMPILER riscv64-unknown-elf-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_C_FLAGS_INIT "-march=rv32imc -mabi=ilp32 -mcmodel=medany -ffreestanding -ffunction-sections -fdata-sections")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -fno-exceptions -fno-rtti")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-nostartfiles -nostdlib -Wl,--gc-sections")
set(CMAKE_C_STANDARD_LIBRARIES -lgcc)
set(CMAKE_CXX_STANDARD_LIBRARIES -lgcc)
set(QUERNEL_TARGET riscv32imc)
set(QUERNEL_BOARD virt-rv32)
set(QUERNEL_BOARD_CORE riscv32imc)
set(CMAKE_CROSSCOMPILING_EMULATOR
  qemu-system-riscv32 -M virt -bios none -nographic -monitor none -serial none -icount shift=0
  -semihosting-config enable=on,target=native -kernel)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
