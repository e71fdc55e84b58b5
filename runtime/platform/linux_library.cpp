#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "platform/library.h"

namespace quernel::platform {

void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void* library_function(void* library, const char* name) { return dlsym(library, name); }
void close_library(void* library) { dlclose(library); }

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

bool replace_file(const char* path, const Piece* pieces, uint32_t count) {
  char temporary[4096];
  size_t length = strlen(path);
  if (length > 4000) return false;
  memcpy(temporary, path, length);
  // Of this process and call: two writers must not share one.
  static uint32_t calls = 0;
  uint64_t number =
      static_cast<uint64_t>(getpid()) << 20 | (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) & 0xFFFFF);
  temporary[length++] = '.';
  for (int shift = 60; shift >= 0; shift -= 4) temporary[length++] = "0123456789abcdef"[number >> shift & 15];
  temporary[length] = '\0';
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  bool ok = true;
  for (uint32_t i = 0; i < count && ok; ++i) ok = write_all(fd, pieces[i].data, pieces[i].bytes);
  ok = close(fd) == 0 && ok;
  ok = ok && rename(temporary, path) == 0;
  if (!ok) unlink(temporary);
  return ok;
}

}  // namespace quernel::platform
