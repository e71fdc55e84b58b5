// What the compiler writes into --dump-dir, for tests of the text of schedules and shaders.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace quernel::testing {

// The files of one test.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/quernel-shaders-XXXXXX";
    if (char* made = mkdtemp(path)) path_ = made;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The schedule and the shaders of what was compiled last.
inline std::string dumped(const Folder& folder) {
  std::string text;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (!entry.path().filename().string().ends_with("plan-memory.txt") && entry.path().extension() != ".comp")
      continue;
    std::ifstream file(entry.path());
    text.append(std::istreambuf_iterator<char>(file), {});
  }
  return text;
}

inline size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

}  // namespace quernel::testing
