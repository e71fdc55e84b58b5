# Cortex-M23, emulated as qemu's mps2-an505: its Cortex-M33 runs M23's instructions. Start-up makes it refuse what an M23
# refuses, loads and stores that are not aligned.
set(QUERNEL_TARGET cortex-m23)
set(QUERNEL_CPU_FLAGS "-mcpu=cortex-m23 -mfloat-abi=soft")
set(QUERNEL_BOARD mps2-an505)
set(QUERNEL_BOARD_CORE cortex-m33)
set(QUERNEL_BOARD_TICK 5000)
include(${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi.cmake)
