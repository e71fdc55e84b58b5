// Parses and runs kernels for tests: buffers filled from a fixed seed, results as bytes.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "loop/interpret.h"
#include "loop/parse.h"
#include "loop/print.h"
#include "loop/verify.h"

namespace quernel::loop {

// A kernel from text that must parse; reports to gtest and gives an empty kernel if it does not.
Kernel parsed(const std::string& text);

using Bytes = std::vector<std::vector<uint8_t>>;

// Contents for each buffer: small integers in every dtype, so that float sums are exact whatever their order.
Bytes seeded_buffers(const Kernel& kernel, uint32_t seed);

// The buffers after the kernel ran on `buffers`; errors of the interpreter go to `error`.
Bytes run(const Kernel& kernel, Bytes buffers, std::string* error, const std::vector<int64_t>& symbols = {});

}  // namespace quernel::loop
