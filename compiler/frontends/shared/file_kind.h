// What a file is that was given for a model and is none: by bytes near its beginning.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace quernel {

enum class ModelFormat { kOnnx, kTflite };

struct FileKind {
  const char* what;  // "a zip archive"
  const char* hint;  // how to come to a model of the wanted format
};

// Returns nullopt where the first bytes do not tell.
std::optional<FileKind> kind_of_file(std::span<const uint8_t> bytes, ModelFormat wanted);

}  // namespace quernel
