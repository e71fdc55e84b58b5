// Maps an image and calls its kernels, without the runtime: mmap the ELF file, ask e_entry for the table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/llvm/compile_kernels.h"
#include "schemas/kernel_abi.h"

namespace quernel::test {

class MappedImage {
 public:
  explicit MappedImage(const std::vector<uint8_t>& elf);
  MappedImage(const MappedImage&) = delete;
  ~MappedImage();

  const qnl_image_table* table() const { return table_; }
  qnl_kernel_fn kernel(size_t index) const;
  int32_t call(size_t index, const std::vector<void*>& bindings, uint64_t workgroups = 1,
               const std::vector<int64_t>& symbols = {}, void* scratch = nullptr) const;

 private:
  void* memory_ = nullptr;
  size_t size_ = 0;
  const qnl_image_table* table_ = nullptr;
};

// Compiles for `target`; a failure is a test failure with the diagnostics as its text, and an empty image.
codegen::Image compile_or_fail(const std::vector<loop::Kernel>& kernels, const std::string& target,
                               const codegen::MachineCodeOptions& options = {});

}  // namespace quernel::test
