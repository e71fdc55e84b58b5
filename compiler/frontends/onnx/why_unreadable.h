// Why bytes are not read as an ONNX model: what they are instead, or which limit they exceed.
#pragma once

#include <cstdint>
#include <span>

#include "support/expected.h"

namespace quernel::onnx_import {

// Of protobuf messages in each other; a graph in a graph takes three of them. More than what the limit on
// nested bodies allows, and little enough for the parser's stack.
inline constexpr int kMaxMessageDepth = 200;

// Requires bytes that do not parse.
Diagnostic why_unreadable(std::span<const uint8_t> bytes, const Location& place);

}  // namespace quernel::onnx_import
