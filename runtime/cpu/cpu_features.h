// Detects what this CPU can execute: its architecture and QNL_<ARCH>_* bits, including what the operating
// system must enable (wide register state).
#pragma once

#include <stdint.h>

namespace quernel::runtime {

uint32_t host_arch();
uint64_t host_features();

}  // namespace quernel::runtime
