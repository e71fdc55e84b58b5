// Memory for a word per item, arena or kernel, without a heap.
#pragma once

#include <stdint.h>

#include "platform/platform.h"

namespace quernel::runtime {

// Words in separate pages, initially 0.
class PageWords {
 public:
  PageWords() = default;
  ~PageWords() {
    if (words_ != nullptr) platform::free_pages(words_, bytes_);
  }
  PageWords(const PageWords&) = delete;
  PageWords& operator=(const PageWords&) = delete;

  bool allocate(uint64_t count) {
    bytes_ = count * sizeof(uint32_t);
    words_ = static_cast<uint32_t*>(platform::allocate_pages(bytes_));
    return words_ != nullptr;
  }
  uint32_t* data() { return words_; }
  uint32_t& operator[](uint32_t index) { return words_[index]; }

 private:
  uint32_t* words_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace quernel::runtime
