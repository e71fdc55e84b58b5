#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/file.h"

namespace quernel::platform {

namespace {
bool write_all(int fd, const void* data, uint64_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    ssize_t written = write(fd, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<uint64_t>(written);
  }
  return true;
}
}  // namespace

namespace {
// Whether the file at `name` was left behind: its writer, which would hold a lock, is gone.
bool is_leftover(const char* name) {
  int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  struct stat info;
  bool gone = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0;
  close(fd);
  return gone;
}

// Creates the file at `name`, or gives a file without a name this one.
bool create_or_link(const char* name, int* fd) {
  if (*fd < 0) {
    *fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    return *fd >= 0;
  }
  char self[40];
  snprintf(self, sizeof self, "/proc/self/fd/%d", *fd);
  return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
}

// The same at a free name beside `path`; those of writers that are gone are free.
bool take_name(const char* path, char* name, size_t bytes, int* fd) {
  for (int i = 0; i < 100; ++i) {
    snprintf(name, bytes, "%s.tmp-%d", path, i);
    if (create_or_link(name, fd)) return true;
    if (errno != EEXIST) return false;
    if (is_leftover(name) && unlink(name) == 0 && create_or_link(name, fd)) return true;
  }
  errno = EEXIST;
  return false;
}

// A new file without a name, where the file system has those; a killed process leaves nothing of it.
int open_nameless(const char* path) {
  char folder[4096] = ".";
  const char* slash = strrchr(path, '/');
  if (slash != nullptr) snprintf(folder, sizeof folder, "%.*s", static_cast<int>(slash + 1 - path), path);
  return open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}
}  // namespace

bool replace_file(const char* path, const Piece* pieces, uint32_t count) {
  char temporary[4096];
  struct stat info;
  bool other = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
  if (other || strlen(path) > 4000) {
    errno = other ? EINVAL : ENAMETOOLONG;
    return false;
  }
  int fd = open_nameless(path);
  bool named = fd < 0;
  if (named && !take_name(path, temporary, sizeof temporary, &fd)) return false;
  (void)!flock(fd, LOCK_EX | LOCK_NB);  // says that this process is not gone
  bool ok = true;
  for (uint32_t i = 0; i < count && ok; ++i) ok = write_all(fd, pieces[i].data, pieces[i].bytes);
  ok = ok && (fsync(fd) == 0 || errno == EINVAL);
  if (ok && !named) ok = named = take_name(path, temporary, sizeof temporary, &fd);
  ok = ok && rename(temporary, path) == 0;
  int error = errno;
  if (!ok && named) unlink(temporary);
  if (close(fd) != 0 && ok) return false;
  errno = error;
  return ok;
}

}  // namespace quernel::platform
