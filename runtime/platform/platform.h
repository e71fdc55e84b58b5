// The services that the runtime needs from an operating system: files mapped read-only, pages that are either
// writable or executable, a clock, and threads that can sleep on a word. A port implements this header in one
// file.
#pragma once

#include <stdint.h>

namespace quernel::platform {

enum class MapResult { kOk, kNotFound, kUnreadable };

struct MappedFile {
  const void* data = nullptr;  // page-aligned, read-only; null for an empty file
  uint64_t bytes = 0;
};

// Maps a regular file. On failure *reason is a static text.
MapResult map_file(const char* path, MappedFile* file, const char** reason);
void unmap_file(const MappedFile& file);

// Returns zero-filled, writable, page-aligned memory; null if the system refuses. bytes > 0.
void* allocate_pages(uint64_t bytes);
void free_pages(void* pages, uint64_t bytes);
// Changes pages from writable to readable and executable, never both, and updates the instruction cache.
bool make_executable(void* pages, uint64_t bytes);

uint64_t now_nanoseconds();

// Returns how many processors the process may use, at least 1.
uint32_t processor_count();

struct Thread {
  uintptr_t handle;  // written by start_thread
};
bool start_thread(Thread* thread, void (*run)(void*), void* argument);
void join_thread(const Thread& thread);

inline constexpr uint64_t kForever = ~uint64_t{0};
// Sleeps while *word == expected, until a wake or the timeout. May return early without reason.
void park(const uint32_t* word, uint32_t expected, uint64_t timeout_nanoseconds);
// Wakes up to `count` threads that sleep on the word.
void wake(const uint32_t* word, uint32_t count);

// One step of a short wait without sleeping.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

}  // namespace quernel::platform
