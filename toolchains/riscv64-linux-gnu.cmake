# RISC-V 64 Linux: cmake --preset riscv64, or -DCMAKE_TOOLCHAIN_FILE=toolchains/riscv64-linux-gnu.cmake. The compiler is
# Debian's g++-riscv64-linux-gnu, the emulator its qemu-user-static (`install_debian.sh --cross`). Programs are linked
# statically, so that they run on any such device, and under the emulator without the device's libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER riscv64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER riscv64-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-riscv64-static)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
