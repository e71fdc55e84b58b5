# Shared by the toolchain files of Cortex-M: Debian's gcc-arm-none-eabi, without a C library's start-up code. They set
# QUERNEL_CPU_FLAGS, QUERNEL_FPU_FLAGS (where the core has an FPU), QUERNEL_BOARD (a machine of qemu-system-arm),
# QUERNEL_BOARD_CORE (its core, which runs all code of the target's) and QUERNEL_BOARD_TICK (hundredths of a nanosecond of
# its SysTick). -DQUERNEL_TARGET_OPTIONS=+nofp or +softfp builds for QUERNEL_TARGET with that option (compiler/targets/README.md).
set(QUERNEL_FLOAT_FLAGS "${QUERNEL_FPU_FLAGS}")
if(QUERNEL_TARGET_OPTIONS)
  if(QUERNEL_FPU_FLAGS AND QUERNEL_TARGET_OPTIONS STREQUAL "+nofp")
    set(QUERNEL_FLOAT_FLAGS -mfloat-abi=soft)
  elseif(QUERNEL_FPU_FLAGS AND QUERNEL_TARGET_OPTIONS STREQUAL "+softfp")
    string(REPLACE hard softfp QUERNEL_FLOAT_FLAGS "${QUERNEL_FPU_FLAGS}")
  else()
    message(FATAL_ERROR "${QUERNEL_TARGET}: no code for QUERNEL_TARGET_OPTIONS '${QUERNEL_TARGET_OPTIONS}'")
  endif()
  string(APPEND QUERNEL_TARGET "${QUERNEL_TARGET_OPTIONS}")
endif()
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_CXX_COMPILER arm-none-eabi-g++)
set(CMAKE_ASM_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES QUERNEL_CPU_FLAGS QUERNEL_FPU_FLAGS QUERNEL_TARGET_OPTIONS QUERNEL_BOARD
  QUERNEL_BOARD_CORE QUERNEL_BOARD_TICK)
set(CMAKE_C_FLAGS_INIT "${QUERNEL_CPU_FLAGS} ${QUERNEL_FLOAT_FLAGS} -mthumb -ffreestanding -ffunction-sections -fdata-sections")
set(CMAKE_CXX_FLAGS_INIT "${CMAKE_C_FLAGS_INIT} -fno-exceptions -fno-rtti")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-nostartfiles -nostdlib -Wl,--gc-sections")
set(CMAKE_C_STANDARD_LIBRARIES -lgcc)
set(CMAKE_CXX_STANDARD_LIBRARIES -lgcc)
# -icount: time advances by a nanosecond for each instruction, so that a clock counts instructions.
set(CMAKE_CROSSCOMPILING_EMULATOR
  qemu-system-arm -M ${QUERNEL_BOARD} -nographic -monitor none -serial none -icount shift=0
  -semihosting-config enable=on,target=native -kernel)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
