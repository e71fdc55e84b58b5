#include "support/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

namespace quernel {
namespace {

// Linux maps as much around the page that was read as lies in one piece of its cache.
constexpr size_t kLargestPiece = size_t{2} << 20;

// What tells a file from others, and from what it was before somebody wrote to it.
using FileState = std::tuple<dev_t, ino_t, off_t, time_t, long>;

struct Mapping {
  FileState file;
  size_t size = 0;
  std::weak_ptr<const void> owner;
};

// The mappings of this process, by address.
struct Mappings {
  std::mutex mutex;
  std::map<const uint8_t*, Mapping> known;
};
Mappings& mappings() {
  static Mappings all;
  return all;
}

void give_back(const uint8_t* data, size_t bytes) {
  (void)::madvise(const_cast<uint8_t*>(data), bytes, MADV_DONTNEED);
}

void unmap(const void* data, size_t size) {
  {
    std::lock_guard lock(mappings().mutex);
    mappings().known.erase(static_cast<const uint8_t*>(data));
  }
  ::munmap(const_cast<void*>(data), size);
}

}  // namespace

MappedFile map_whole_file(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return {};
  const FileState file{info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
  const auto size = static_cast<size_t>(info.st_size);
  std::lock_guard lock(mappings().mutex);
  for (const auto& [data, mapping] : mappings().known)
    if (mapping.file == file)
      if (std::shared_ptr<const void> owner = mapping.owner.lock()) return {std::move(owner), data, size};
  void* pages = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (pages == MAP_FAILED) return {};
  std::shared_ptr<const void> owner(pages, [size](const void* data) { unmap(data, size); });
  const auto* data = static_cast<const uint8_t*>(pages);
  mappings().known[data] = {file, size, owner};
  return {std::move(owner), data, size};
}

void release_pages(const void* data, size_t bytes) {
  const auto* begin = static_cast<const uint8_t*>(data);
  std::lock_guard lock(mappings().mutex);
  auto after = mappings().known.upper_bound(begin);
  if (after == mappings().known.begin() || bytes == 0) return;
  const auto& [first, mapping] = *std::prev(after);
  const auto at = static_cast<size_t>(begin - first);
  if (at >= mapping.size || bytes > mapping.size - at) return;
  const size_t from = at / kLargestPiece * kLargestPiece;
  const size_t to = std::min(mapping.size, (at + bytes + kLargestPiece - 1) / kLargestPiece * kLargestPiece);
  give_back(first + from, to - from);
}

void release_all_pages() {
  std::lock_guard lock(mappings().mutex);
  for (const auto& [data, mapping] : mappings().known) give_back(data, mapping.size);
}

}  // namespace quernel
