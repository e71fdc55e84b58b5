#include "frontends/shared/map_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/mapped_file.h"

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
  if (status.st_size == 0) {
    close(file);
    return Bytes::own({});
  }
  MappedFile mapped = map_whole_file(file);
  const int error = errno;
  close(file);
  if (!mapped.owner) return invalid_input("cannot map the " + what + ": " + std::strerror(error), place);
  return Bytes(std::move(mapped.owner), mapped.data, mapped.size);
}

}  // namespace quernel
