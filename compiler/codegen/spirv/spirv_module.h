// SPIR-V modules: made of GLSL, validated, asked what they need of a device. `name` is the kernel's, for
// diagnostics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/expected.h"

namespace quernel::codegen {

// Of one compute shader, for Vulkan 1.1 and SPIR-V 1.3. What glslang refuses is an internal error.
Expected<std::vector<uint32_t>> compile_glsl(const std::string& text, const std::string& name);
// By SPIRV-Tools' rules for Vulkan 1.1; what it refuses is an internal error.
Status validate(const std::vector<uint32_t>& words, const std::string& name);
// The QNL_SPIRV_* features whose capabilities the module declares.
Expected<uint64_t> features_of(const std::vector<uint32_t>& words, const std::string& name);
std::string disassemble(const std::vector<uint32_t>& words);

}  // namespace quernel::codegen
