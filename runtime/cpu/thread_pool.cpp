#include "cpu/thread_pool.h"

namespace quernel::runtime {
namespace {

// Long enough to meet the next dispatch of the same run, short enough not to be seen as load.
constexpr uint64_t kWorkerSpinNanoseconds = 50000;
constexpr uint64_t kCallerSpinNanoseconds = 20000;
// More chunks than threads, so that a thread that is slow or late takes fewer.
constexpr uint32_t kChunksPerThread = 4;

uint32_t next_of(uint64_t share) { return static_cast<uint32_t>(share) & 0xFFFF; }
uint32_t end_of(uint64_t share) { return static_cast<uint32_t>(share >> 16) & 0xFFFF; }
bool has_work(uint64_t share) { return next_of(share) < end_of(share); }
constexpr uint64_t kNext = 1, kEnd = uint64_t{1} << 16;

// n * i / parts, rounded up and without overflow: where part i of n begins when they are divided into
// `parts`. They differ by one at most, sums of as many parts, too; the first are the larger ones.
uint64_t boundary(uint64_t n, uint64_t parts, uint64_t i) {
  return n / parts * i + (n % parts * i + parts - 1) / parts;
}

// Of a dispatch with at least two workgroups.
uint64_t chunk_count(const Dispatch& dispatch, uint32_t threads) {
  uint64_t wanted = uint64_t{threads} * kChunksPerThread;
  return dispatch.workgroups < wanted ? dispatch.workgroups : wanted;
}

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
  uint64_t chunks = chunk_count(dispatch, threads_);

  store_relaxed(dispatch_.kernel, dispatch.kernel);
  store_relaxed(dispatch_.bindings, dispatch.bindings);
  store_relaxed(dispatch_.symbols, dispatch.symbols);
  store_relaxed(dispatch_.scratch, dispatch.scratch);
  store_relaxed(dispatch_.scratch_stride, dispatch.scratch_stride);
  store_relaxed(dispatch_.workgroups, dispatch.workgroups);
  store_relaxed(done_, 0u);
  store_relaxed(code_, 0);
  uint64_t share = uint64_t{++generation_} << 32;
  for (uint32_t t = threads_; t-- > 0;) {
    uint64_t begin = boundary(chunks, threads_, t), end = boundary(chunks, threads_, t + 1);
    if (begin != end)
      __atomic_store_n(&shares_[t].word, share | end * kEnd | begin * kNext, __ATOMIC_SEQ_CST);
  }
  // Either this sees a worker that is about to sleep, or that worker sees its new share: both sides
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

bool ThreadPool::claim(uint32_t share, bool last, uint32_t* chunk, Dispatch* dispatch) {
  uint64_t& word = shares_[share].word;
  uint64_t seen = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
  while (has_work(seen)) {
    dispatch->kernel = load_relaxed(dispatch_.kernel);
    dispatch->bindings = load_relaxed(dispatch_.bindings);
    dispatch->symbols = load_relaxed(dispatch_.symbols);
    dispatch->scratch = load_relaxed(dispatch_.scratch);
    dispatch->scratch_stride = load_relaxed(dispatch_.scratch_stride);
    dispatch->workgroups = load_relaxed(dispatch_.workgroups);
    uint64_t left = last ? seen - kEnd : seen + kNext;
    if (__atomic_compare_exchange_n(&word, &seen, left, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      *chunk = last ? end_of(left) : next_of(seen);
      return true;
    }
  }
  return false;
}

void ThreadPool::work(uint32_t thread) {
  // Until it has had a share, the pool may still be starting, and threads_ be written.
  if (__atomic_load_n(&shares_[thread].word, __ATOMIC_ACQUIRE) == 0) return;
  for (uint32_t other = 0; other < threads_; ++other) {
    uint32_t share = thread + other < threads_ ? thread + other : thread + other - threads_;
    // What it claims belongs to one generation, which cannot end before it has been counted.
    Dispatch dispatch;
    uint64_t chunks = 0;
    uint32_t chunk, claimed = 0;
    while (claim(share, other != 0, &chunk, &dispatch)) {
      chunks = chunk_count(dispatch, threads_);
      int32_t code = run_range(dispatch, thread, boundary(dispatch.workgroups, chunks, chunk),
                               boundary(dispatch.workgroups, chunks, chunk + 1));
      int32_t none = 0;
      if (code != 0)
        __atomic_compare_exchange_n(&code_, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
      ++claimed;
    }
    if (claimed == 0) continue;
    uint32_t done = __atomic_add_fetch(&done_, claimed, __ATOMIC_SEQ_CST);
    if (done == chunks && thread != 0 && __atomic_load_n(&caller_sleeps_, __ATOMIC_SEQ_CST) != 0)
      platform::wake(&done_, 1);
  }
}

// Returns when the share has changed since it was `seen` or the pool stops; false: it stops.
bool ThreadPool::wait_for_work(const Share& share, uint64_t seen) {
  auto changed = [&] {
    return __atomic_load_n(&share.word, __ATOMIC_ACQUIRE) != seen || load_relaxed(stopping_) != 0;
  };
  if (!spin_until(changed, kWorkerSpinNanoseconds)) {
    __atomic_fetch_add(&sleeping_, 1u, __ATOMIC_SEQ_CST);
    for (;;) {
      uint32_t wakeups = __atomic_load_n(&wakeups_, __ATOMIC_SEQ_CST);
      if (__atomic_load_n(&share.word, __ATOMIC_SEQ_CST) != seen ||
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
  const Share& share = pool->shares_[worker->index];
  uint64_t seen;
  do {
    pool->work(worker->index);
    seen = __atomic_load_n(&share.word, __ATOMIC_ACQUIRE);
  } while (has_work(seen) || pool->wait_for_work(share, seen));
}

}  // namespace quernel::runtime
