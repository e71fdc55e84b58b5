// A private temporary directory, removed with all it holds at the end.
#pragma once

#include <string>

namespace quernel::tools {

class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  const std::string& path() const { return path_; }  // empty when it could not be made

 private:
  std::string path_;
};

}  // namespace quernel::tools
