#include "cpu/thread_pool.h"

namespace quernel::runtime {
namespace {

// Long enough to meet the next dispatch of the same run, short enough not to be seen as load.
constexpr uint64_t kWorkerSpinNanoseconds = 50000;
constexpr uint64_t kCallerSpinNanoseconds = 20000;
// Of a part: of a thread that is slow or late others take some.
constexpr uint32_t kChunks = 4;

constexpr uint32_t kOne = 1, kFirst = 1u << 16;  // of Share::left
uint32_t count_of(uint32_t left) { return left & (kFirst - 1); }

}  // namespace

int32_t run_range(const Dispatch& dispatch, uint32_t thread, uint64_t begin, uint64_t end) {
  if (begin >= end) return 0;
  qnl_kernel_args args;
  args.bindings = dispatch.bindings;
  args.symbols = dispatch.symbols;
  args.scratch = dispatch.scratch == nullptr ? nullptr : dispatch.scratch + thread * dispatch.scratch_stride;
  return dispatch.kernel(&args, begin, end);
}

bool ThreadPool::start(uint32_t threads) {
  threads_ = 1;
  shares_[0].left = 0;
  for (uint32_t t = 1; t < threads; ++t) {
    Share& share = shares_[t];
    share.left = 0;
    share.pool = this;
    if (!platform::start_thread(&share.thread, worker_main, &share)) {
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
  for (uint32_t t = 1; t < threads_; ++t) platform::join_thread(shares_[t].thread);
  threads_ = 1;
}

int32_t ThreadPool::run(const Dispatch& dispatch) {
  // None or one workgroup, or more than shares can count.
  if (threads_ == 1 || (dispatch.workgroups - 2) >> 31 != 0)
    return run_range(dispatch, 0, 0, dispatch.workgroups);

  Guard guard(&lock_);
  dispatch_ = dispatch;
  code_ = 0;
  uint32_t parts = 0;
  auto end = static_cast<uint32_t>(dispatch.workgroups);
  for (uint32_t t = threads_; t-- > 0;) {
    Share& share = shares_[t];
    share.end = end;
    end -= end / (t + 1);  // of what is left: parts differ by one at most
    share.begin = end;
    share.of_chunk = (share.end - end + kChunks - 1) / kChunks;
    if (share.of_chunk == 0) continue;
    ++parts;
    __atomic_store_n(&share.left, kChunks, __ATOMIC_SEQ_CST);
  }
  __atomic_fetch_add(&unfinished_, parts * kChunks, __ATOMIC_RELAXED);  // some may be finished already
  // Either this sees a worker that is about to sleep, or that worker sees its share: both sides order their
  // store before their load.
  if (__atomic_load_n(&sleeping_, __ATOMIC_SEQ_CST) != 0) {
    __atomic_fetch_add(&wakeups_, 1u, __ATOMIC_SEQ_CST);
    platform::wake(&wakeups_, parts);
  }

  work(0);
  if (!spin(unfinished_, false, kCallerSpinNanoseconds)) {
    __atomic_store_n(&caller_sleeps_, 1u, __ATOMIC_SEQ_CST);
    uint32_t unfinished;
    while ((unfinished = __atomic_load_n(&unfinished_, __ATOMIC_SEQ_CST)) != 0)
      platform::park(&unfinished_, unfinished, platform::kForever);
    __atomic_store_n(&caller_sleeps_, 0u, __ATOMIC_RELAXED);
  }
  return __atomic_load_n(&code_, __ATOMIC_RELAXED);
}

// Until there are some chunks, or none, or the pool stops; false: for so long it was not so.
bool ThreadPool::spin(const uint32_t& chunks, bool until_some, uint64_t nanoseconds) const {
  uint64_t begin = platform::now_nanoseconds();
  do {
    for (int i = 0; i < 64; ++i) {
      bool some = count_of(__atomic_load_n(&chunks, __ATOMIC_SEQ_CST)) != 0;
      if (some == until_some || __atomic_load_n(&stopping_, __ATOMIC_RELAXED) != 0) return true;
      platform::spin_pause();
    }
  } while (platform::now_nanoseconds() - begin <= nanoseconds);
  return false;
}

int32_t ThreadPool::run_chunk(const Share& share, uint32_t thread, uint32_t chunk) const {
  uint32_t begin = share.begin + chunk * share.of_chunk, end = begin + share.of_chunk;
  return run_range(dispatch_, thread, begin, end < share.end ? end : share.end);
}

void ThreadPool::work(uint32_t thread) {
  uint32_t t = thread;
  do {
    Share& share = shares_[t];
    // What it claims belongs to one dispatch, which cannot end before it has been counted.
    uint32_t claimed = 0, left = __atomic_load_n(&share.left, __ATOMIC_ACQUIRE);
    while (count_of(left) != 0) {
      uint32_t fewer = t == thread ? left + kFirst - kOne : left - kOne;
      if (!__atomic_compare_exchange_n(&share.left, &left, fewer, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        continue;
      uint32_t chunk = left / kFirst + (t == thread ? 0 : count_of(fewer));
      int32_t code = run_chunk(share, thread, chunk), none = 0;
      if (code != 0)
        __atomic_compare_exchange_n(&code_, &none, code, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
      ++claimed;
      left = __atomic_load_n(&share.left, __ATOMIC_ACQUIRE);
    }
    if (claimed != 0) {
      __atomic_fetch_sub(&unfinished_, claimed, __ATOMIC_SEQ_CST);
      if (thread != 0 && __atomic_load_n(&caller_sleeps_, __ATOMIC_SEQ_CST) != 0)
        platform::wake(&unfinished_, 1);
    }
    if (++t == threads_) t = 0;
  } while (t != thread);
}

// Returns when the share has work or the pool stops; false: it stops.
bool ThreadPool::wait_for_work(const Share& share) {
  while (!spin(share.left, true, kWorkerSpinNanoseconds)) {
    __atomic_fetch_add(&sleeping_, 1u, __ATOMIC_SEQ_CST);
    uint32_t wakeups = __atomic_load_n(&wakeups_, __ATOMIC_SEQ_CST);
    if (!spin(share.left, true, 0)) platform::park(&wakeups_, wakeups, platform::kForever);
    __atomic_fetch_sub(&sleeping_, 1u, __ATOMIC_SEQ_CST);
  }
  return __atomic_load_n(&stopping_, __ATOMIC_SEQ_CST) == 0;
}

void ThreadPool::worker_main(void* argument) {
  Share* share = static_cast<Share*>(argument);
  ThreadPool* pool = share->pool;
  while (pool->wait_for_work(*share)) pool->work(static_cast<uint32_t>(share - pool->shares_));
}

}  // namespace quernel::runtime
