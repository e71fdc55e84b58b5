#include "frontends/shared/map_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace quernel {

Expected<Bytes> map_file(const std::string& path, const std::string& what) {
  Location place{.file = path};
  int file =
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // a FIFO must not keep it waiting
  if (file < 0) return invalid_input("cannot open the " + what + ": " + std::strerror(errno), place);
  struct stat status {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    return invalid_input("expected the " + what + " to be a regular file", place);
  }
  size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) {
    close(file);
    return Bytes::own({});
  }
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (data == MAP_FAILED) return invalid_input("cannot map the " + what + ": " + std::strerror(errno), place);
  std::shared_ptr<const void> owner(data, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  return Bytes(owner, static_cast<const uint8_t*>(data), size);
}

}  // namespace quernel
