// Executes a kernel as its text says, before or after any pass: a plain tree walker, the oracle of the
// passes' and the code generators' tests. It shares nothing with code generation and checks every access
// against its buffer.
#pragma once

#include <cstdint>
#include <span>

#include "loop/ir.h"
#include "support/expected.h"

namespace quernel::loop {

// `bindings[i]` are the bytes of kernel.buffers[i], little-endian elements, i4/u4 low nibble first;
// `symbols[i]` is the value of kernel.symbols[i]. Runs all workgroups in order. Floats compute in f64 and
// round to their dtype; mulacc rounds once. Fails on an index outside its buffer (naming kernel, buffer,
// index and size) or a binding of wrong size.
Status interpret(const Kernel& kernel, std::span<const std::span<uint8_t>> bindings,
                 std::span<const int64_t> symbols = {});

}  // namespace quernel::loop
