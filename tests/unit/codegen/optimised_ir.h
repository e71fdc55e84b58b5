// What LLVM's passes make of a kernel.
#pragma once

#include <string>

namespace quernel {

// Returns the LLVM IR of the kernel's function after all passes. `text`: the kernel in loop IR; `preset`: the target.
std::string optimised(const std::string& text, const std::string& preset);

// Returns how often the regular expression matches.
size_t count(const std::string& text, const std::string& pattern);

}  // namespace quernel
