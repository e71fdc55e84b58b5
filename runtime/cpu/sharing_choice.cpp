#include "cpu/sharing_choice.h"

namespace quernel::runtime {
namespace {

// Below the first estimate a kernel is not worth sharing: meeting another thread takes about a microsecond,
// and estimates are optimistic.
constexpr uint32_t kSmallNanoseconds = 4000, kLargeNanoseconds = 20000;
// A trial takes levels in turns, the best so far first; others end early where they are much slower. Trials
// come early when runs get slow, and seldom while sharing all is best.
constexpr uint32_t kTurns = 5, kFewestTurns = 2;
constexpr uint32_t kRunsBetweenTrials = 500, kRunsOfAllShared = 4000, kRunsBeforeEarlyTrial = 64,
                   kSlowRuns = 8;

constexpr uint32_t kNone = ~uint32_t{0};
// The first trial waits until pages and caches are known and a new thread has come to a processor of its own:
// five milliseconds.
constexpr uint32_t kSettling = 5000000 / SharingChoice::kTimeUnit;

}  // namespace

bool SharingChoice::shares(uint32_t estimate) {
  uint32_t kind = (estimate >= kSmallNanoseconds ? 1 : 0) + (estimate >= kLargeNanoseconds ? 1 : 0);
  work_ += estimate;
  kinds_ |= 1u << kind;
  return kind > level_;
}

// A level differs from the one before in what is too small for it.
void SharingChoice::begin_trial() {
  untried_ = kinds_ | 1;
  level_ = best_;
  best_time_ = kNone;
  turn_ = 0;
}

void SharingChoice::end_run(uint32_t now) {
  uint32_t time = now - begin_;
  if (kinds_ < 2) return;
  if (work_ != compared_work_) {
    compared_work_ = work_;
    first_ = now;
    best_ = level_ = untried_ = 0;
    best_time_ = kNone;
  }
  if (untried_ == 0) {
    ++runs_;
    ++slow_runs_;
    if (time - time / 4 <= best_time_) slow_runs_ = 0;
    bool slow = slow_runs_ >= kSlowRuns && runs_ >= kRunsBeforeEarlyTrial;
    if (best_time_ == kNone ? now - first_ >= kSettling
                            : slow || runs_ >= (best_ == 0 ? kRunsOfAllShared : kRunsBetweenTrials))
      begin_trial();
    return;
  }
  if (turn_ == 0) sum_ = most_ = 0;
  ++turn_;
  sum_ += time;
  if (time > most_) most_ = time;
  uint32_t others = sum_ - most_;  // without the slowest, which something else may have held up
  bool lost = turn_ == kFewestTurns && others - others / 8 > best_time_;
  if (!lost && turn_ < kTurns) return;
  uint32_t typical = others / (kTurns - 1);
  if (!lost && typical < best_time_ - best_time_ / 32) {  // another has to gain that much
    best_ = level_;
    best_time_ = typical;
  }
  untried_ &= ~(1u << level_);
  level_ = untried_ == 0 ? best_ : static_cast<uint32_t>(__builtin_ctz(untried_));
  turn_ = runs_ = slow_runs_ = 0;
}

}  // namespace quernel::runtime
