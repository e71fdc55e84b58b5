// Files mapped for reading. Pages that were read can be given back while the mapping stays: who reads them again gets
// them from the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace quernel {

struct MappedFile {
  std::shared_ptr<const void> owner;  // of the mapping, which several may share
  const uint8_t* data = nullptr;
  size_t size = 0;
};

// Maps a whole regular file of at least one byte. A file that is mapped already is not mapped again. Without an owner:
// errno says why not.
MappedFile map_whole_file(int fd);

// Gives back the pages of a range, if it lies in a mapped file; other memory stays as it is.
void release_pages(const void* data, size_t bytes);
// Gives back those of all mapped files.
void release_all_pages();

}  // namespace quernel
