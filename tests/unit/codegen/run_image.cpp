#include "run_image.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

namespace quernel::test {

MappedImage::MappedImage(const std::vector<uint8_t>& elf) : size_(elf.size()) {
  int fd = memfd_create("image", 0);
  if (fd < 0 || write(fd, elf.data(), elf.size()) != static_cast<ssize_t>(elf.size())) std::abort();
  memory_ = mmap(nullptr, size_, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  close(fd);
  if (memory_ == MAP_FAILED) std::abort();
  Elf64_Ehdr header;
  std::memcpy(&header, memory_, sizeof(header));
  auto query = reinterpret_cast<qnl_image_query_fn>(static_cast<char*>(memory_) + header.e_entry);
  table_ = query(QNL_KERNEL_ABI_VERSION);
  if (query(QNL_KERNEL_ABI_VERSION + 1) != nullptr) std::abort();
}

MappedImage::~MappedImage() { munmap(memory_, size_); }

qnl_kernel_fn MappedImage::kernel(size_t index) const {
  auto base = reinterpret_cast<const char*>(table_);
  return reinterpret_cast<qnl_kernel_fn>(const_cast<char*>(base + table_->offsets[index]));
}

int32_t MappedImage::call(size_t index, const std::vector<void*>& bindings, uint64_t workgroups,
                          const std::vector<int64_t>& symbols, void* scratch) const {
  qnl_kernel_args args{bindings.data(), symbols.data(), scratch};
  return kernel(index)(&args, 0, workgroups);
}

codegen::Image compile_or_fail(const std::vector<loop::Kernel>& kernels, const std::string& target,
                               const codegen::MachineCodeOptions& options) {
  auto facts = find_target(target);
  EXPECT_TRUE(facts);
  auto image = codegen::compile_kernels(kernels, *facts, options);
  if (!image) {
    ADD_FAILURE() << to_string(image.errors());
    return {};
  }
  return *image;
}

}  // namespace quernel::test
