// Files: read only where they are regular ones, and written whole or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/expected.h"

namespace quernel {

// A descriptor to read from; -1: *reason says why not. What is no regular file is refused, because a FIFO or
// a device may keep its reader waiting for ever.
int open_regular_file(const std::string& path, std::string* reason);

// All bytes of a regular file; nothing: *reason says why not.
std::optional<std::string> read_file(const std::string& path, std::string* reason);

// A file that has no name until it is complete, or, where the file system cannot do that, a name of its own
// beside the destination: one that exists is taken over only if the process that wrote it is gone. Whatever
// happens, the destructor leaves nothing behind.
class OutputFile {
 public:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // These return false with errno as the system's call left it.
  [[nodiscard]] bool open();
  [[nodiscard]] bool write(const void* data, uint64_t bytes, uint64_t offset);
  // Makes the file `bytes` long, waits until it is on the disk, and gives it a name beside the destination.
  [[nodiscard]] bool store(uint64_t bytes);
  // Gives it the destination's name. A link there is replaced, not followed.
  [[nodiscard]] bool publish();

  const std::string& path() const { return path_; }

 private:
  bool name_it();

  std::string path_, temporary_;
  int fd_ = -1;
};

// Writes a file at once.
Status write_file(const std::string& path, std::string_view text);

// Keeps files that are opened later from taking the place of a standard stream that the caller has closed.
void keep_standard_streams();

// Writes beyond a limit of file sizes fail instead of killing the process, so that they clean up.
void ignore_file_size_signal();

}  // namespace quernel
