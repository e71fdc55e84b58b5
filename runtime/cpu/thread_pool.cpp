#include "cpu/thread_pool.h"

namespace quernel::runtime {
namespace {

// Long enough to meet the next dispatch of the same run, short enough not to be seen as load.
constexpr uint64_t kWorkerSpinNanoseconds = 50000;
constexpr uint64_t kCallerSpinNanoseconds = 20000;
// More chunks than threads, so that a thread that is slow or late takes fewer.
constexpr uint32_t kChunksPerThread = 4;

uint32_t generation(uint64_t claim) { return static_cast<uint32_t>(claim >> 32); }
uint32_t chunk_count(uint64_t claim) { return static_cast<uint32_t>(claim >> 16) & 0xFFFF; }
uint32_t next_chunk(uint64_t claim) { return static_cast<uint32_t>(claim) & 0xFFFF; }
bool has_work(uint64_t claim) { return next_chunk(claim) < chunk_count(claim); }

// The dispatch is read while the caller may be writing the next one; the claim that follows tells whether
// what was read is whole. Relaxed atomics make that defined.
template <class T>
T load_relaxed(const T& from) {
  return __atomic_load_n(&from, __ATOMIC_RELAXED);
}
template <class T>
void store_relaxed(T& to, T value) {
  __atomic_store_n(&to, value, __ATOMIC_RELAXED);
}

template <class Condition>
bool spin_until(Condition condition, uint64_t nanoseconds) {
  uint64_t begin = platform::now_nanoseconds();
  for (;;) {
    for (int i = 0; i < 64; ++i) {
      if (condition()) return true;
      platform::spin_pause();
    }
    if (platform::now_nanoseconds() - begin > nanoseconds) return false;
  }
}

}  // namespace

int32_t run_range(const Dispatch& dispatch, uint32_t thread, uint64_t begin, uint64_t end) {
  qnl_kernel_args args;
  args.bindings = dispatch.bindings;
  args.symbols = dispatch.symbols;
  args.scratch = dispatch.scratch == nullptr ? nullptr : dispatch.scratch + thread * dispatch.scratch_stride;
  return dispatch.kernel(&args, begin, end);
}

bool ThreadPool::start(uint32_t threads) {
  threads_ = 1;
  for (uint32_t t = 1; t < threads; ++t) {
    workers_[t].pool = this;
    workers_[t].index = t;
    if (!platform::start_thread(&workers_[t].thread, worker_main, &workers_[t])) {
      stop();
      return false;
    }
    threads_ = t + 1;
  }
  return true;
}

void ThreadPool::stop() {
  __atomic_store_n(&stopping_, 1u, __ATOMIC_SEQ_CST);
  __atomic_fetch_add(&wakeups_, 1u, __ATOMIC_SEQ_CST);
  platform::wake(&wakeups_, kMaxThreads);
  for (uint32_t t = 1; t < threads_; ++t) platform::join_thread(workers_[t].thread);
  threads_ = 1;
}

int32_t ThreadPool::run(const Dispatch& dispatch) {
  if (dispatch.workgroups == 0) return 0;
  if (threads_ == 1 || dispatch.workgroups == 1) return run_range(dispatch, 0, 0, dispatch.workgroups);
  uint64_t wanted = uint64_t{threads_} * kChunksPerThread;
  uint64_t chunks = dispatch.workgroups < wanted ? dispatch.workgroups : wanted;

  store_relaxed(dispatch_.kernel, dispatch.kernel);
  store_relaxed(dispatch_.bindings, dispatch.bindings);
  store_relaxed(dispatch_.symbols, dispatch.symbols);
  store_relaxed(dispatch_.scratch, dispatch.scratch);
  store_relaxed(dispatch_.scratch_stride, dispatch.scratch_stride);
  store_relaxed(dispatch_.workgroups, dispatch.workgroups);
  store_relaxed(done_, 0u);
  store_relaxed(code_, 0);
  uint64_t next = (uint64_t{generation(load_relaxed(claim_)) + 1} << 32) | chunks << 16;
  __atomic_store_n(&claim_, next, __ATOMIC_SEQ_CST);
  // Either this sees a worker that is about to sleep, or that worker sees the new claim word: both sides
  // order their store before their load.
  if (__atomic_load_n(&sleeping_, __ATOMIC_SEQ_CST) != 0) {
    __atomic_fetch_add(&wakeups_, 1u, __ATOMIC_SEQ_CST);
    platform::wake(&wakeups_, static_cast<uint32_t>(chunks - 1));
  }

  work(0);
  auto complete = [&] { return __atomic_load_n(&done_, __ATOMIC_ACQUIRE) == chunks; };
  if (!spin_until(complete, kCallerSpinNanoseconds)) {
    __atomic_store_n(&caller_sleeps_, 1u, __ATOMIC_SEQ_CST);
    uint32_t done;
    while ((done = __atomic_load_n(&done_, __ATOMIC_SEQ_CST)) != chunks)
      platform::park(&done_, done, platform::kForever);
    __atomic_store_n(&caller_sleeps_, 0u, __ATOMIC_RELAXED);
  }
  return load_relaxed(code_);
}

bool ThreadPool::claim(uint32_t* chunk, uint32_t* chunks, Dispatch* dispatch) {
  uint64_t seen = __atomic_load_n(&claim_, __ATOMIC_ACQUIRE);
  while (has_work(seen)) {
    dispatch->kernel = load_relaxed(dispatch_.kernel);
    dispatch->bindings = load_relaxed(dispatch_.bindings);
    dispatch->symbols = load_relaxed(dispatch_.symbols);
    dispatch->scratch = load_relaxed(dispatch_.scratch);
    dispatch->scratch_stride = load_relaxed(dispatch_.scratch_stride);
    dispatch->workgroups = load_relaxed(dispatch_.workgroups);
    if (__atomic_compare_exchange_n(&claim_, &seen, seen + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      *chunk = next_chunk(seen);
      *chunks = chunk_count(seen);
      return true;
    }
  }
  return false;
}

void ThreadPool::work(uint32_t thread) {
  uint32_t chunk, chunks;
  Dispatch dispatch;
  while (claim(&chunk, &chunks, &dispatch)) {
    // Boundaries n * i / chunks without overflow; chunks differ by one workgroup at most.
    uint64_t each = dispatch.workgroups / chunks, rest = dispatch.workgroups % chunks;
    uint64_t begin = each * chunk + (chunk < rest ? chunk : rest);
    uint64_t end = begin + each + (chunk < rest ? 1 : 0);
    int32_t code = run_range(dispatch, thread, begin, end);
    int32_t none = 0;
    if (code != 0)
      __atomic_compare_exchange_n(&code_, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    uint32_t done = __atomic_add_fetch(&done_, 1u, __ATOMIC_SEQ_CST);
    if (done == chunks && thread != 0 && __atomic_load_n(&caller_sleeps_, __ATOMIC_SEQ_CST) != 0)
      platform::wake(&done_, 1);
  }
}

// Returns when the claim word has work again or the pool stops; false: it stops.
bool ThreadPool::wait_for_work(uint64_t seen) {
  auto changed = [&] {
    return __atomic_load_n(&claim_, __ATOMIC_ACQUIRE) != seen || load_relaxed(stopping_) != 0;
  };
  if (!spin_until(changed, kWorkerSpinNanoseconds)) {
    __atomic_fetch_add(&sleeping_, 1u, __ATOMIC_SEQ_CST);
    for (;;) {
      uint32_t wakeups = __atomic_load_n(&wakeups_, __ATOMIC_SEQ_CST);
      if (__atomic_load_n(&claim_, __ATOMIC_SEQ_CST) != seen ||
          __atomic_load_n(&stopping_, __ATOMIC_SEQ_CST) != 0)
        break;
      platform::park(&wakeups_, wakeups, platform::kForever);
    }
    __atomic_fetch_sub(&sleeping_, 1u, __ATOMIC_SEQ_CST);
  }
  return __atomic_load_n(&stopping_, __ATOMIC_SEQ_CST) == 0;
}

void ThreadPool::worker_main(void* argument) {
  Worker* worker = static_cast<Worker*>(argument);
  ThreadPool* pool = worker->pool;
  uint64_t seen;
  do {
    pool->work(worker->index);
    seen = __atomic_load_n(&pool->claim_, __ATOMIC_ACQUIRE);
  } while (has_work(seen) || pool->wait_for_work(seen));
}

}  // namespace quernel::runtime
