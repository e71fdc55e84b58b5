// A model's message without the bytes of its large tensors: protobuf would copy them, and they can be read in the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace quernel::onnx_import {

// What a detached tensor names as the location of its external data: no file is called so.
inline constexpr std::string_view kOwnFile{"\0model", 6};

// Returns the message in which large raw data of initializers, and of tensors that are attributes, are external data at
// their offset in `model`. Nothing where there is no such tensor, or where the bytes make no sense.
std::optional<std::string> detach_weights(std::span<const uint8_t> model);

}  // namespace quernel::onnx_import
