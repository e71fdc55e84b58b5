# ARMv7 Linux with hard-float calls: cmake --preset armv7, or -DCMAKE_TOOLCHAIN_FILE=toolchains/arm-linux-gnueabihf.cmake.
# The compiler is Debian's g++-arm-linux-gnueabihf, the emulator its qemu-user-static (`install_debian.sh --cross`).
# Programs are linked statically, so that they run on any such device, and under the emulator without the device's libraries.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR armv7)
set(CMAKE_C_COMPILER arm-linux-gnueabihf-gcc)
set(CMAKE_CXX_COMPILER arm-linux-gnueabihf-g++)
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)  # calls between old and new objects, of which there are none
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-arm-static)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
