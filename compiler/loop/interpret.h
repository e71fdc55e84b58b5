// Executes a kernel as its text says, before or after any pass: a plain tree walker. It is the oracle for
// tests of the passes and the code generators. It shares nothing with code generation, and checks every
// access against its buffer.
#pragma once

#include <cstdint>
#include <span>

#include "loop/ir.h"
#include "support/expected.h"

namespace quernel::loop {

// Runs all workgroups in order. `bindings[i]`: the bytes of kernel.buffers[i], little-endian elements, i4/u4
// low nibble first. `symbols[i]`: the value of kernel.symbols[i]. Floats are computed in f64 and rounded to
// their dtype; mulacc rounds once. Fails on an index outside its buffer (naming kernel, buffer, index and
// size) or a binding of the wrong size.
Status interpret(const Kernel& kernel, std::span<const std::span<uint8_t>> bindings,
                 std::span<const int64_t> symbols = {});

}  // namespace quernel::loop
