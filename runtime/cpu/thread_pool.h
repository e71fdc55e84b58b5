// The thread pool of the CPU device: the caller and its workers claim ranges of one dispatch's workgroups.
// Each thread has the same part of every dispatch, so that what it wrote is in its cache when the next one
// reads it, and takes from the others' parts when its own is done. Workers spin for a moment after a
// dispatch, then sleep; a sleeping or late worker never makes the caller wait for work that nobody has begun.
#pragma once

#include <stdint.h>

#include "core/lock.h"
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

// Runs workgroups [begin, end), of which there may be none, on the calling thread, as thread `thread` of the
// pool.
int32_t run_range(const Dispatch& dispatch, uint32_t thread, uint64_t begin, uint64_t end);

inline constexpr uint32_t kMaxThreads = 256;

class ThreadPool {
 public:
  // Starts threads - 1 workers; on failure none is left. The pool must not move afterwards.
  bool start(uint32_t threads);
  void stop();
  uint32_t threads() const { return threads_; }

  // Runs all workgroups and returns the first non-zero code, or 0. Several threads take turns.
  int32_t run(const Dispatch& dispatch);

 private:
  // A thread and its part of a dispatch, in chunks, in a cache line of its own that no neighbour is fetched
  // with. left: the chunks that nobody has claimed: the first (16 bits) | how many (16). The thread takes the
  // first, others the last. From a claim, a compare-and-swap that succeeds, until it is counted as done, the
  // part and dispatch_ stay as they are.
  struct alignas(256) Share {
    uint32_t left;
    uint32_t begin, end, of_chunk;  // workgroups; the last chunks may have fewer, or none
    ThreadPool* pool;
    platform::Thread thread;  // none of the caller's
  };
  static void worker_main(void* argument);
  void work(uint32_t thread);
  int32_t run_chunk(const Share& share, uint32_t thread, uint32_t chunk) const;
  bool spin(const uint32_t& chunks, bool until_some, uint64_t nanoseconds) const;
  bool wait_for_work(const Share& share);

  Lock lock_;  // of run
  alignas(64) Dispatch dispatch_;
  alignas(64) uint32_t unfinished_ = 0;  // chunks of the dispatch
  uint32_t caller_sleeps_ = 0;
  int32_t code_ = 0;
  alignas(64) uint32_t sleeping_ = 0;  // workers that sleep on wakeups_, or are about to
  uint32_t wakeups_ = 0;
  uint32_t stopping_ = 0;
  uint32_t threads_ = 1;
  Share shares_[kMaxThreads];  // of threads_; no others are touched
};

}  // namespace quernel::runtime
