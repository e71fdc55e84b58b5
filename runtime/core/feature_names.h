// Names of architectures and features in texts, from schemas/features.def.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

// Returns "x86-64"…; "unknown architecture" for a number outside the list.
const char* arch_name(uint32_t arch);
// Returns "avx512-vnni"…; null for a bit outside the list.
const char* feature_name(uint32_t arch, uint32_t bit);

}  // namespace quernel::runtime
