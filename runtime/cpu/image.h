// The loader of code images: one strictly checked ELF segment, copied to pages that are first writable, then
// executable. schemas/kernel_abi.h defines the accepted form.
#pragma once

#include <stdint.h>

#include "core/failure.h"

namespace quernel::runtime {

// The one loadable segment of a checked image.
struct ImageLayout {
  uintptr_t segment_offset = 0;  // in the file
  uintptr_t segment_bytes = 0;
  uintptr_t entry = 0;  // offset of the query function in the segment
};

// Checks an image of this architecture; runs and maps nothing.
qnl_status verify_image(const void* data, uint64_t bytes, uint32_t arch, ImageLayout* layout,
                        qnl_error* error);

// The kernels of a loaded image; its pages are read-only and executable.
class Image {
 public:
  // Verifies, maps and queries the image. kernel_count: as the bundle says.
  qnl_status load(const void* data, uint64_t bytes, uint32_t arch, uint32_t kernel_count, qnl_error* error);
  void unload();

  qnl_kernel_fn kernel(uint32_t index) const;
  uint64_t page_bytes() const { return bytes_; }

 private:
  qnl_status query(uintptr_t entry, uint32_t kernel_count, qnl_error* error);

  char* pages_ = nullptr;
  uintptr_t bytes_ = 0;
  const qnl_image_table* table_ = nullptr;
};

}  // namespace quernel::runtime
