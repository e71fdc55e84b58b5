// SPIR-V modules: compiled from GLSL, validated, and queried for the features they need. `name` is the
// kernel's, for diagnostics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/expected.h"

namespace quernel::codegen {

// Compiles one compute shader, for Vulkan 1.1 and SPIR-V 1.3. Text that glslang refuses is an internal error.
Expected<std::vector<uint32_t>> compile_glsl(const std::string& text, const std::string& name);
// Validates by SPIRV-Tools' rules for Vulkan 1.1. A module that they refuse is an internal error.
Status validate(const std::vector<uint32_t>& words, const std::string& name);
// Returns the QNL_SPIRV_* features whose capabilities the module declares.
Expected<uint64_t> features_of(const std::vector<uint32_t>& words, const std::string& name);
// Returns its text, of cooperative matrices in terms of NVIDIA's older extension.
std::string disassemble(const std::vector<uint32_t>& words);

}  // namespace quernel::codegen
