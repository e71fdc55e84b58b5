# Cortex-M55 with Helium, emulated as qemu's mps3-an547.
set(QUERNEL_TARGET cortex-m55)
set(QUERNEL_CPU_FLAGS "-mcpu=cortex-m55")
set(QUERNEL_FPU_FLAGS "-mfloat-abi=hard")
set(QUERNEL_BOARD mps3-an547)
set(QUERNEL_BOARD_CORE cortex-m55)
set(QUERNEL_BOARD_TICK 3125)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
