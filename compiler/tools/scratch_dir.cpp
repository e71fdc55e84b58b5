#include "scratch_dir.h"

#include <stdlib.h>

#include <filesystem>

namespace quernel::tools {

ScratchDir::ScratchDir() {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) return;
  std::string pattern = (parent / "quernel-XXXXXX").string();
  if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

ScratchDir::~ScratchDir() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace quernel::tools
