// The thread pool of the CPU device: the caller and its workers claim ranges of one dispatch's workgroups.
// Each thread has the same part of every dispatch, so that what it wrote is in its cache when the next one
// reads it, and takes from the others' parts when its own is done. Workers spin for a moment after a
// dispatch, then sleep; a sleeping or late worker never makes the caller wait for work that nobody has begun.
#pragma once

#include <stdint.h>

#include "platform/platform.h"
#include "schemas/kernel_abi.h"

namespace quernel::runtime {

// One dispatch, as the pool shares it.
struct Dispatch {
  qnl_kernel_fn kernel = nullptr;
  void* const* bindings = nullptr;
  const int64_t* symbols = nullptr;
  char* scratch = nullptr;  // thread t has scratch + t * scratch_stride; null: none
  uint64_t scratch_stride = 0;
  uint64_t workgroups = 0;
};

// Runs workgroups [begin, end) on the calling thread, as thread `thread` of the pool.
int32_t run_range(const Dispatch& dispatch, uint32_t thread, uint64_t begin, uint64_t end);

inline constexpr uint32_t kMaxThreads = 256;

class ThreadPool {
 public:
  // Starts threads - 1 workers; on failure none is left. The pool must not move afterwards.
  bool start(uint32_t threads);
  void stop();
  uint32_t threads() const { return threads_; }

  // Runs all workgroups and returns the first non-zero code, or 0. Only from the thread that owns the pool.
  int32_t run(const Dispatch& dispatch);

 private:
  struct Worker {
    ThreadPool* pool = nullptr;
    uint32_t index = 0;
    platform::Thread thread;
  };
  // The chunks of one thread that nobody has claimed: generation (32 bits) | end (16) | next (16), in a cache
  // line of its own. The thread takes the next, others the last. A claim that succeeds by compare-and-swap
  // proves that dispatch_ belongs to the generation it was made for: that changes only after all chunks of a
  // generation are done, and the word with it.
  struct alignas(256) Share {
    uint64_t word = 0;
  };
  static void worker_main(void* argument);
  void work(uint32_t thread);
  bool claim(uint32_t share, bool last, uint32_t* chunk, Dispatch* dispatch);
  bool wait_for_work(const Share& share, uint64_t seen);

  alignas(64) Dispatch dispatch_;
  uint32_t generation_ = 0;        // the caller's
  alignas(64) uint32_t done_ = 0;  // chunks finished in this generation
  uint32_t caller_sleeps_ = 0;
  int32_t code_ = 0;
  alignas(64) uint32_t sleeping_ = 0;  // workers that sleep on wakeups_, or are about to
  uint32_t wakeups_ = 0;
  uint32_t stopping_ = 0;
  uint32_t threads_ = 1;
  Share shares_[kMaxThreads];
  Worker workers_[kMaxThreads];
};

}  // namespace quernel::runtime
