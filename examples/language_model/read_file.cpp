#include "read_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace language_model {
namespace {

struct Close {
  void operator()(FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<FILE, Close>;

[[noreturn]] void fail(const std::string& path) {
  throw std::runtime_error(path + ": " + std::strerror(errno));
}

}  // namespace

std::string read_file(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail(path);
  std::string contents;
  char block[1 << 16];
  for (size_t n; (n = std::fread(block, 1, sizeof block, file.get())) > 0;) contents.append(block, n);
  if (std::ferror(file.get())) fail(path);
  return contents;
}

void write_file(const std::string& path, const std::string& contents) {
  const std::string partial = path + ".partial";
  File file(std::fopen(partial.c_str(), "wb"));
  if (!file) fail(partial);
  bool written = std::fwrite(contents.data(), 1, contents.size(), file.get()) == contents.size();
  written = std::fclose(file.release()) == 0 && written;
  if (written && std::rename(partial.c_str(), path.c_str()) == 0) return;
  const int cause = errno;
  std::remove(partial.c_str());
  errno = cause;
  fail(path);
}

}  // namespace language_model
