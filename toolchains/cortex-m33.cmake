# Cortex-M33 with single precision, emulated as qemu's mps2-an505.
set(QUERNEL_TARGET cortex-m33)
set(QUERNEL_CPU_FLAGS "-mcpu=cortex-m33")
set(QUERNEL_FPU_FLAGS "-mfloat-abi=hard -mfpu=fpv5-sp-d16")
set(QUERNEL_BOARD mps2-an505)
set(QUERNEL_BOARD_CORE cortex-m33)
set(QUERNEL_BOARD_TICK 5000)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
