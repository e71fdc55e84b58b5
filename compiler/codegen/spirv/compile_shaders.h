// Compiles loop-IR kernels to the code segment of a SPIR-V variant (schemas/kernel_abi.h), through GLSL,
// glslang and SPIRV-Tools' validator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct ShaderOptions {
  std::string dump_dir;  // if set: receives <kernel>.comp and <kernel>.spvasm
};

struct ShaderImage {
  std::vector<uint8_t> table;  // qnl_spirv_table and the modules
  std::vector<std::string> kernel_names;
  uint64_t features = 0;  // QNL_SPIRV_* bits that the modules need together
};

// Requires kernels after loop/passes. Equal input gives equal bytes. A kernel that exceeds the target (shared
// memory, invocations) is unsupported. Text that glslang or the validator refuses is an internal error.
Expected<ShaderImage> compile_shaders(const std::vector<loop::Kernel>& kernels, const Target& target,
                                      const ShaderOptions& options);

}  // namespace quernel::codegen
