// Which kernels of a recording threads share, found by trying. Where cores are far apart, or others use them,
// moving a small kernel's operands to the other core takes longer than the kernel, and no estimate knows it.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

class SharingChoice {
 public:
  // What is shared: kernels that are worth waking a thread for, large ones, none.
  static constexpr uint32_t kLevels = 3;

  // What one run executed, by estimate of one thread's nanoseconds.
  class Run {
   public:
    // Counts a kernel; true when threads share it at that level.
    bool add(uint64_t estimate, uint32_t level);

   private:
    friend class SharingChoice;
    uint64_t work_ = 0;               // tells runs of other shapes from these
    uint32_t kernels_[kLevels] = {};  // that a level shares
  };

  // The level of the next run.
  uint32_t level() const { return level_; }
  // That run took so long.
  void ran(const Run& run, uint64_t nanoseconds);

 private:
  // A trial takes levels in turns, the best so far first; others end early where they are much slower.
  static constexpr uint32_t kTurns = 5, kFewestTurns = 2;
  // Trials come early when runs get slow, and seldom while sharing all is best.
  static constexpr uint32_t kRunsBetweenTrials = 500, kMostRunsBetweenTrials = 8000;
  static constexpr uint32_t kRunsBeforeEarlyTrial = 64, kSlowRuns = 8;

  void begin_trial();
  void end_turns(const Run& run, uint64_t typical);
  bool is_distinct(const Run& run, uint32_t level) const;

  uint64_t work_ = 0;
  uint64_t best_nanoseconds_ = 0;  // of best_, at its last trial
  uint64_t times_[kTurns] = {};
  uint32_t best_ = 0, level_ = 0;
  uint32_t tried_ = 0;  // levels of this trial, a bit each
  uint32_t turn_ = 0;
  bool trial_ = false;
  uint32_t runs_ = 0, slow_runs_ = 0;  // since the last trial; at the end of these
  uint32_t next_trial_ = kRunsBetweenTrials / 2;
};

}  // namespace quernel::runtime
