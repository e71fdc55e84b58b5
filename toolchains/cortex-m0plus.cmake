# Cortex-M0 and M0+, emulated as qemu's microbit.
set(QUERNEL_TARGET cortex-m0plus)
set(QUERNEL_CPU_FLAGS "-mcpu=cortex-m0plus -mfloat-abi=soft")
set(QUERNEL_BOARD microbit)
set(QUERNEL_BOARD_TICK 6250)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
