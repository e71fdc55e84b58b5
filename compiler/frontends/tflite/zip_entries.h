// Files of a ZIP archive at the end of another file, as TensorFlow Lite's metadata have them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace quernel::tflite_import {

struct ZipEntry {
  std::string name;
  // Of a file that is not compressed; else nullopt.
  std::optional<std::span<const uint8_t>> data;
};

// Returns the archive's files, their data inside `file`; nothing where there is no archive, or a damaged one.
std::vector<ZipEntry> zip_entries(std::span<const uint8_t> file);

}  // namespace quernel::tflite_import
