// Names of architectures and of their feature bits, for people: those of schemas/features.def.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schemas/kernel_abi.h"

namespace quernel::tools {

std::string_view arch_name(qnl_arch arch);  // "x86-64"; "unknown architecture" for a number without a name
// Names of the bits that are set, lowest first; a bit without a name is "bit-N".
std::vector<std::string> feature_names(qnl_arch arch, uint64_t features);
// The same as one text, "x86-64-v1 x86-64-v2", or "none".
std::string feature_text(qnl_arch arch, uint64_t features);

}  // namespace quernel::tools
