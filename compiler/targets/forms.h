// What can be made for a target.
#pragma once

#include <string_view>

#include "targets/target.h"

namespace quernel {

inline constexpr std::string_view kGenericC = "generic-c";

// Whether the target is any machine with a C compiler: there is C for it, but no machine code.
inline bool has_only_c(const Target& target) { return target.name == kGenericC; }

}  // namespace quernel
