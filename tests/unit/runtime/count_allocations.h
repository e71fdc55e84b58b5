// Counts what a test program allocates while `counting` is set: calls of malloc (which operator new calls)
// and of mmap. Replaces both for the whole program: include it in one source file.
#pragma once

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace {
std::atomic<bool> counting{false};
std::atomic<uint64_t> allocations{0};
[[maybe_unused]] void count() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
}
}  // namespace

#if defined(__SANITIZE_ADDRESS__)  // the sanitizer brings its own malloc and mmap
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* malloc(size_t size) {
  count();
  return __libc_malloc(size);
}
void* calloc(size_t n, size_t size) {
  count();
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t size) {
  count();
  return __libc_realloc(p, size);
}
void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) noexcept {
  count();
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, fd, offset));
}
}
#endif
