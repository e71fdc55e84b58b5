# Cortex-M0+, emulated as qemu's mps2-an385: its Cortex-M3 runs M0+'s instructions and has memory for models. Start-up makes
# it refuse what an M0+ refuses, loads and stores that are not aligned.
set(QUERNEL_TARGET cortex-m0plus)
set(QUERNEL_CPU_FLAGS "-mcpu=cortex-m0plus -mfloat-abi=soft")
set(QUERNEL_BOARD mps2-an385)
set(QUERNEL_BOARD_CORE cortex-m3)
set(QUERNEL_BOARD_TICK 4000)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
