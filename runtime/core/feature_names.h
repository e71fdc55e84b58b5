// What texts call architectures and their features: the names of schemas/features.def.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

// "x86-64"; "unknown architecture" for a number that the list does not have.
const char* arch_name(uint32_t arch);
// "avx512-vnni"; null for a bit that the list does not have.
const char* feature_name(uint32_t arch, uint32_t bit);

}  // namespace quernel::runtime
