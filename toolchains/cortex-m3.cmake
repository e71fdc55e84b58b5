# Cortex-M3, emulated as qemu's mps2-an385.
set(QUERNEL_TARGET cortex-m3)
set(QUERNEL_CPU_FLAGS "-mcpu=cortex-m3 -mfloat-abi=soft")
set(QUERNEL_BOARD mps2-an385)
set(QUERNEL_BOARD_CORE cortex-m3)
set(QUERNEL_BOARD_TICK 4000)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
