// FlexBuffers: the self-describing form that options of most custom operators have.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "frontends/shared/custom_node.h"

namespace quernel::tflite_import {

// Returns the entries of a map of scalars, strings and lists of one kind; bools are 0 or 1. nullopt: the bytes are no such
// map. Nothing outside of `bytes` is read.
std::optional<AttributeValues> read_flexbuffer_map(std::span<const uint8_t> bytes);

}  // namespace quernel::tflite_import
