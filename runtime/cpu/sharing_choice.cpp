#include "cpu/sharing_choice.h"

namespace quernel::runtime {
namespace {

// Below this estimate a kernel is not worth sharing: even just meeting another thread costs a few
// microseconds.
constexpr uint64_t kLeastNanoseconds[SharingChoice::kLevels] = {10000, 40000, ~uint64_t{0}};

// Sorts the times; there are few.
uint64_t median(uint64_t* times, uint32_t count) {
  for (uint32_t i = 1; i < count; ++i)
    for (uint32_t j = i; j > 0 && times[j] < times[j - 1]; --j) {
      uint64_t larger = times[j - 1];
      times[j - 1] = times[j];
      times[j] = larger;
    }
  return times[count / 2];
}

}  // namespace

bool SharingChoice::Run::add(uint64_t estimate, uint32_t level) {
  work_ += estimate;
  bool shared = false;
  for (uint32_t l = 0; l + 1 < kLevels && estimate >= kLeastNanoseconds[l]; ++l) {
    ++kernels_[l];
    shared |= l == level;
  }
  return shared;
}

void SharingChoice::begin_trial() {
  trial_ = true;
  tried_ = 0;
  turn_ = 0;
  level_ = best_;
}

// Levels that share the same kernels are one.
bool SharingChoice::is_distinct(const Run& run, uint32_t level) const {
  return level == 0 || run.kernels_[level] != run.kernels_[level - 1];
}

void SharingChoice::end_turns(const Run& run, uint64_t typical) {
  constexpr uint64_t kGain = 32;  // what another level has to gain: a 32nd
  if (tried_ == 0 || typical < best_nanoseconds_ - best_nanoseconds_ / kGain) {
    best_ = level_;
    best_nanoseconds_ = typical;
  }
  tried_ |= 1u << level_;
  turn_ = 0;
  for (level_ = 0; level_ < kLevels; ++level_)
    if ((tried_ >> level_ & 1) == 0 && is_distinct(run, level_)) return;
  trial_ = false;
  level_ = best_;
  next_trial_ = best_ != 0                                 ? kRunsBetweenTrials
                : next_trial_ * 2 < kMostRunsBetweenTrials ? next_trial_ * 2
                                                           : kMostRunsBetweenTrials;
  runs_ = slow_runs_ = 0;
}

void SharingChoice::ran(const Run& run, uint64_t nanoseconds) {
  if (run.kernels_[0] == 0) return;
  if (run.work_ != work_) {
    work_ = run.work_;
    best_ = 0;
    return begin_trial();  // this first run met caches and pages that it did not know
  }
  if (trial_) {
    times_[turn_++] = nanoseconds;
    uint64_t least = times_[0] < times_[turn_ - 1] ? times_[0] : times_[turn_ - 1];
    bool lost = tried_ != 0 && turn_ == kFewestTurns && least > best_nanoseconds_ + best_nanoseconds_ / 8;
    if (lost || turn_ == kTurns) end_turns(run, lost ? least : median(times_, turn_));
    return;
  }
  slow_runs_ = nanoseconds > best_nanoseconds_ + best_nanoseconds_ / 4 ? slow_runs_ + 1 : 0;
  ++runs_;
  bool early = slow_runs_ >= kSlowRuns && runs_ >= kRunsBeforeEarlyTrial;
  if (early) next_trial_ = kRunsBetweenTrials / 2;
  if (early || runs_ >= next_trial_) begin_trial();
}

}  // namespace quernel::runtime
