// A private directory, removed with what is in it.
#pragma once

#include <string>

namespace quernel {

class TemporaryDirectory {
 public:
  // Below `parent`; without one below the system's directory for temporary files.
  explicit TemporaryDirectory(const std::string& parent = "");
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }  // empty: it could not be made

 private:
  std::string path_;
  int slot_ = -1;
};

// From now on SIGINT, SIGTERM and SIGHUP remove the directories that this process has, before they end it.
void remove_directories_on_signals();

}  // namespace quernel
