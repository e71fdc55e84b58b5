// Checks a SPIR-V module before a driver gets it: drivers may assume that modules are valid.
#pragma once

#include <stdint.h>

#include "core/failure.h"

namespace quernel::runtime::vulkan {

// Checks the instruction stream of a compute shader: version at most 1.3, complete instructions, one entry
// point "main" of the local size, and no capability beyond `features` (QNL_SPIRV_*). `subject` begins the
// error's text. *split: bit b is set if the module has the specialisation constant QNL_SPIRV_SPLIT + b.
qnl_status verify_module(const uint32_t* words, uint64_t count, uint32_t local_size, uint64_t features,
                         const char* subject, uint64_t index, uint64_t* split, qnl_error* error);

}  // namespace quernel::runtime::vulkan
