#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "platform/platform.h"

namespace quernel::platform {

namespace {
constexpr uint64_t kHugePage = uint64_t{2} << 20;  // of x86-64, and of AArch64 with pages of 4 KiB
}  // namespace

MapResult map_file(const char* path, MappedFile* file, const char** reason) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // O_NONBLOCK: opening a fifo must not hang
  if (fd < 0) {
    *reason = errno == ENOENT || errno == ENOTDIR ? "no such file" : "it cannot be opened for reading";
    return errno == ENOENT || errno == ENOTDIR ? MapResult::kNotFound : MapResult::kUnreadable;
  }
  struct stat info;
  *reason = "not a regular file";
  bool ok = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (ok) {
    file->bytes = static_cast<uint64_t>(info.st_size);
    file->data = nullptr;
    if (file->bytes > 0) {
      *reason = "it cannot be mapped";
      void* data = mmap(nullptr, file->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
      ok = data != MAP_FAILED;
      if (ok) file->data = data;
      // What is not in the page cache is then read in pieces of huge pages, where the file system has them; a
      // hint.
      if (ok && file->bytes >= kHugePage) madvise(data, file->bytes, MADV_HUGEPAGE);
    }
  }
  close(fd);
  return ok ? MapResult::kOk : MapResult::kUnreadable;
}

void unmap_file(const MappedFile& file) {
  if (file.data != nullptr) munmap(const_cast<void*>(file.data), file.bytes);
}

namespace {
// What a block takes of the address space: whole huge pages where that adds less than a quarter of one.
uint64_t mapped_bytes(uint64_t bytes) {
  uint64_t unit = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes % kHugePage > kHugePage / 4 * 3) unit = kHugePage;
  return (bytes + unit - 1) & ~(unit - 1);
}
}  // namespace

// Blocks of a huge page and more begin at a boundary of one, so that the kernel uses huge pages as far as
// they reach: one fault in place of 512 while a session runs first, fewer misses of translations ever after.
// The advice is a hint.
void* allocate_pages(uint64_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  uint64_t needed = mapped_bytes(bytes), spare = needed >= kHugePage ? kHugePage : 0;
  void* pages = mmap(nullptr, needed + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || spare == 0) return pages == MAP_FAILED ? nullptr : pages;
  char* begin = static_cast<char*>(pages);
  uint64_t before = (0 - reinterpret_cast<uintptr_t>(pages)) % kHugePage;
  if (before > 0) munmap(begin, before);
  begin += before;
  if (before < spare) munmap(begin + needed, spare - before);
  madvise(begin, needed, MADV_HUGEPAGE);
  return begin;
}

void free_pages(void* pages, uint64_t bytes) {
  if (pages != nullptr) munmap(pages, mapped_bytes(bytes));
}

bool make_executable(void* pages, uint64_t bytes) {
  char* begin = static_cast<char*>(pages);
  __builtin___clear_cache(begin, begin + bytes);
  return mprotect(pages, bytes, PROT_READ | PROT_EXEC) == 0;
}

uint64_t now_nanoseconds() {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

namespace {
// pthreads wants a function returning void*; this carries ours over the start of the thread.
struct Start {
  void (*run)(void*);
  void* argument;
  uint32_t taken;
};
void* start_routine(void* raw) {
  Start* start = static_cast<Start*>(raw);
  Start copy = *start;
  __atomic_store_n(&start->taken, 1u, __ATOMIC_RELEASE);
  wake(&start->taken, 1);
  copy.run(copy.argument);
  return nullptr;
}
}  // namespace

bool start_thread(Thread* thread, void (*run)(void*), void* argument) {
  Start start{run, argument, 0};
  pthread_t handle;
  if (pthread_create(&handle, nullptr, start_routine, &start) != 0) return false;
  while (__atomic_load_n(&start.taken, __ATOMIC_ACQUIRE) == 0) park(&start.taken, 0, kForever);
  thread->handle = static_cast<uintptr_t>(handle);
  return true;
}

uint32_t processor_count() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;  // more than fit in a set
  int count = CPU_COUNT(&set);
  return count > 0 ? static_cast<uint32_t>(count) : 1;
}

void join_thread(const Thread& thread) { pthread_join(static_cast<pthread_t>(thread.handle), nullptr); }

void park(const uint32_t* word, uint32_t expected, uint64_t timeout_nanoseconds) {
  struct timespec timeout;
  timeout.tv_sec = static_cast<time_t>(timeout_nanoseconds / 1000000000u);
  timeout.tv_nsec = static_cast<long>(timeout_nanoseconds % 1000000000u);
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, timeout_nanoseconds == kForever ? nullptr : &timeout,
          nullptr, 0);
}

void wake(const uint32_t* word, uint32_t count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace quernel::platform
