// Folders of ONNX models.
#pragma once

#include <algorithm>
#include <filesystem>
#include <vector>

namespace quernel::onnx_test {

// The models in a folder, sorted: *.onnx, and those of test directories, TEST/model.onnx.
inline std::vector<std::filesystem::path> models_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (!std::filesystem::is_directory(folder)) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path());
    if (std::filesystem::exists(entry.path() / "model.onnx")) paths.push_back(entry.path() / "model.onnx");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace quernel::onnx_test
