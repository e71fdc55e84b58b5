// Loop IR kernels to the code segment of a SPIR-V variant (schemas/kernel_abi.h): GLSL, glslang, SPIRV-Tools'
// validator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct ShaderOptions {
  std::string dump_dir;  // when set: <kernel>.comp and <kernel>.spvasm land there
};

struct ShaderImage {
  std::vector<uint8_t> table;  // qnl_spirv_table and the modules
  std::vector<std::string> kernel_names;
  uint64_t features = 0;  // QNL_SPIRV_* bits that the modules need together
};

// `kernels` must have been through loop/passes. Same input, same bytes. A kernel that needs more than the
// target has (workgroup memory, invocations) is unsupported; text that glslang or the validator refuses is an
// internal error.
Expected<ShaderImage> compile_shaders(const std::vector<loop::Kernel>& kernels, const Target& target,
                                      const ShaderOptions& options);

}  // namespace quernel::codegen
