// Refuses what this code generator cannot translate, before LLVM is involved: after check_kernel has passed,
// emission cannot fail.
#pragma once

#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

// Returns whether a shared buffer is too large for a worker thread's stack. It is then in scratch memory that
// the caller lends.
bool lives_in_scratch(const loop::BufferNode& buffer);

// Returns the scratch bytes that the kernel needs: for all its buffers in scratch, each aligned to 64 bytes.
uint64_t scratch_bytes(const loop::Kernel& kernel);

// `gpu`: a target that may multiply matrices (kMultiplyMatrices); null: none does.
Status check_kernel(const loop::Kernel& kernel, const Target* gpu = nullptr);

}  // namespace quernel::codegen
