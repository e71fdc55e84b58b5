// The thread pool of the CPU device: the caller and its workers claim chunks of one dispatch's workgroups.
// Each thread gets the same part of every dispatch, so that its cache holds what it wrote when the next
// dispatch reads it. A thread that finishes its part takes chunks from other parts. Workers spin briefly
// after a dispatch, then sleep. The caller never waits for work that a sleeping or late worker has not begun.
#pragma once

#include <stdint.h>

#include "core/lock.h"
#include "platform/platform.h"
#include "schemas/kernel_abi.h"

namespace quernel::runtime {

// One dispatch, in the form that the pool shares.
struct Dispatch {
  qnl_kernel_fn kernel = nullptr;
  void* const* bindings = nullptr;
  const int64_t* symbols = nullptr;
  char* scratch = nullptr;  // thread t uses scratch + t * scratch_stride; null: none
  uint64_t scratch_stride = 0;
  uint64_t workgroups = 0;
};

// Runs workgroups [begin, end) on the calling thread, as thread `thread` of the pool. The range may be empty.
// Returns the kernel's code.
int32_t run_range(const Dispatch& dispatch, uint32_t thread, uint64_t begin, uint64_t end);

inline constexpr uint32_t kMaxThreads = 256;

class ThreadPool {
 public:
  // Starts threads - 1 workers; on failure none is left. The pool must not move afterwards.
  bool start(uint32_t threads);
  void stop();
  uint32_t threads() const { return threads_; }

  // Runs all workgroups and returns the first non-zero code, or 0. Concurrent callers take turns.
  int32_t run(const Dispatch& dispatch);

 private:
  // A thread and its part of a dispatch, in chunks. Aligned so that no cache line, nor the line prefetched
  // with it, holds two shares. left: the unclaimed chunks: index of the first (16 bits) | their number (16
  // bits). The thread claims the first chunk, other threads the last. A claim is a successful
  // compare-and-swap. From then until the chunk is counted as done, the part and dispatch_ do not change.
  struct alignas(256) Share {
    uint32_t left;
    uint32_t begin, end, of_chunk;  // in workgroups; the last chunks may be shorter or empty
    ThreadPool* pool;
    platform::Thread thread;  // unused for the caller
  };
  static void worker_main(void* argument);
  void work(uint32_t thread);
  int32_t run_chunk(const Share& share, uint32_t thread, uint32_t chunk) const;
  bool spin(const uint32_t& chunks, bool until_some, uint64_t nanoseconds) const;
  bool wait_for_work(const Share& share);

  Lock lock_;  // held during run
  alignas(64) Dispatch dispatch_;
  alignas(64) uint32_t unfinished_ = 0;  // chunks of the dispatch not yet done
  uint32_t caller_sleeps_ = 0;
  int32_t code_ = 0;
  alignas(64) uint32_t sleeping_ = 0;  // workers that sleep on wakeups_ or are about to
  uint32_t wakeups_ = 0;
  uint32_t stopping_ = 0;
  uint32_t threads_ = 1;
  Share shares_[kMaxThreads];  // the first threads_ are used; the others stay untouched
};

}  // namespace quernel::runtime
