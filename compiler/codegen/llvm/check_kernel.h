// Refuses what this code generator cannot translate, before any LLVM code sees it: after a pass of
// check_kernel, emission cannot fail.
#pragma once

#include "loop/ir.h"
#include "support/expected.h"

namespace quernel::codegen {

// Whether a shared buffer is too large for the stack of a worker thread: it lives in scratch that the caller
// lends.
bool lives_in_scratch(const loop::BufferNode& buffer);

// What the kernel wants lent: that much for all buffers that live in scratch, each aligned to 64 bytes.
uint64_t scratch_bytes(const loop::Kernel& kernel);

Status check_kernel(const loop::Kernel& kernel);

}  // namespace quernel::codegen
