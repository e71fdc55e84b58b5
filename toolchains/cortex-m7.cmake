# Cortex-M7 with single precision, emulated as qemu's mps2-an500.
set(QUERNEL_TARGET cortex-m7)
set(QUERNEL_CPU_FLAGS "-mcpu=cortex-m7")
set(QUERNEL_FPU_FLAGS "-mfloat-abi=hard -mfpu=fpv5-sp-d16")
set(QUERNEL_BOARD mps2-an500)
set(QUERNEL_BOARD_CORE cortex-m7)
set(QUERNEL_BOARD_TICK 4000)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
