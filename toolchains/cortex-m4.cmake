# Cortex-M4F, emulated as qemu's mps2-an386.
set(QUERNEL_TARGET cortex-m4)
set(QUERNEL_CPU_FLAGS "-mcpu=cortex-m4")
set(QUERNEL_FPU_FLAGS "-mfloat-abi=hard -mfpu=fpv4-sp-d16")
set(QUERNEL_BOARD mps2-an386)
set(QUERNEL_BOARD_CORE cortex-m4)
set(QUERNEL_BOARD_TICK 4000)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
