// Numbers in GLSL.
#pragma once

#include <cstdint>
#include <string>

namespace quernel::codegen {

// Returns a float or double with these bits.
std::string glsl_float(uint64_t bits, bool is_f32);

}  // namespace quernel::codegen
