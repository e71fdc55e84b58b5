#include "support/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace quernel {
namespace {

constexpr int kMostNames = 100;  // of files that are on their way to one destination at once

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

// Whether the file at `name` was left behind: its writer, which would hold a lock, is gone.
bool is_leftover(const std::string& name) {
  int fd = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat info;
  bool gone = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return gone;
}

// Tries names beside `path` until `take` succeeds with one, which is returned; empty: errno says why not.
template <class Take>
std::string take_name(const std::string& path, Take take) {
  for (int i = 0; i < kMostNames; ++i) {
    std::string name = path + ".tmp-" + std::to_string(i);
    if (take(name)) return name;
    if (errno != EEXIST) return "";
    if (is_leftover(name) && ::unlink(name.c_str()) == 0 && take(name)) return name;
  }
  errno = EEXIST;
  return "";
}

}  // namespace

int open_regular_file(const std::string& path, std::string* reason) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info;
  if (fd < 0 || ::fstat(fd, &info) != 0) {
    *reason = std::strerror(errno);
    if (fd >= 0) ::close(fd);
    return -1;
  }
  if (S_ISREG(info.st_mode)) return fd;
  *reason = std::string("expected a regular file, found ") + kind_of(info.st_mode);
  ::close(fd);
  return -1;
}

std::optional<std::string> read_file(const std::string& path, std::string* reason) {
  int fd = open_regular_file(path, reason);
  if (fd < 0) return std::nullopt;
  std::string text;
  struct stat info;
  if (::fstat(fd, &info) == 0) text.reserve(static_cast<size_t>(info.st_size));
  char piece[1 << 16];
  ssize_t got = 0;
  do {
    got = ::read(fd, piece, sizeof piece);
    if (got > 0) text.append(piece, static_cast<size_t>(got));
  } while (got > 0 || (got < 0 && errno == EINTR));
  if (got < 0) *reason = std::strerror(errno);
  ::close(fd);
  if (got < 0) return std::nullopt;
  return text;
}

OutputFile::~OutputFile() {
  int error = errno;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (fd_ >= 0) ::close(fd_);
  errno = error;
}

bool OutputFile::open() {
  fd_ = ::open(folder_of(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ >= 0) return true;
  temporary_ = take_name(path_, [&](const std::string& name) {
    fd_ = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0666);
    return fd_ >= 0;
  });
  if (fd_ >= 0) (void)!::flock(fd_, LOCK_EX | LOCK_NB);  // says that this process is not gone
  return fd_ >= 0;
}

bool OutputFile::write(const void* data, uint64_t bytes, uint64_t offset) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t n = ::pwrite(fd_, from, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    from += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

bool OutputFile::name_it() {
  std::string self = "/proc/self/fd/" + std::to_string(fd_);
  (void)!::flock(fd_, LOCK_EX | LOCK_NB);
  temporary_ = take_name(path_, [&](const std::string& name) {
    return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  });
  return !temporary_.empty();
}

bool OutputFile::store(uint64_t bytes) {
  if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return false;
  // File systems without fsync have nothing to store.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) return false;
  return !temporary_.empty() || name_it();
}

bool OutputFile::publish() {
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
  temporary_.clear();
  int fd = fd_;
  fd_ = -1;
  return ::close(fd) == 0;
}

Status write_file(const std::string& path, std::string_view text) {
  OutputFile file(path);
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return invalid_input(std::string("expected a regular file or nothing, found ") + kind_of(info.st_mode),
                         {path, {}, {}, 0});
  if (file.open() && file.write(text.data(), text.size(), 0) && file.store(text.size()) && file.publish())
    return {};
  return invalid_input(std::string("cannot be written: ") + std::strerror(errno), {path, {}, {}, 0});
}

void keep_standard_streams() {
  for (int fd = 0; fd < 3; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

void ignore_file_size_signal() { std::signal(SIGXFSZ, SIG_IGN); }

}  // namespace quernel
