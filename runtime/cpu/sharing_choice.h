// Chooses by measurement which kernels of a recording the threads share. If cores are far apart or busy,
// moving a small kernel's operands to another core can take longer than the kernel. No estimate knows this.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

class SharingChoice {
 public:
  // Policies: share the kernels that are worth waking a thread for, share large ones only, share none.
  static constexpr uint32_t kLevels = 3;
  static constexpr uint32_t kTimeUnit = 64;  // nanoseconds; 32 bits last for minutes

  // `now`: from a clock that may wrap between runs.
  void begin_run(uint32_t now) {
    work_ = kinds_ = 0;
    begin_ = now;
  }
  // Returns whether threads share the run's next kernel. estimate: its nanoseconds on one thread.
  bool shares(uint32_t estimate);
  // Call when all kernels of the run are done.
  void end_run(uint32_t now);

  uint32_t level() const { return level_; }

 private:
  void begin_trial();

  uint32_t level_ = 0, best_ = 0;
  uint32_t best_time_ = 0;  // of best_, at its last trial
  // The current run: the sum of its estimates, which may wrap, because it only distinguishes shapes; a bit
  // per kind of kernel: too small to share, small, large.
  uint32_t work_ = 0, kinds_ = 0, begin_ = 0;
  uint32_t compared_work_ = 0;  // work_ of the runs being compared
  uint32_t first_ = 0;          // end of the first of them
  uint32_t untried_ = 0;        // policies left in this trial, one bit each; 0: no trial
  uint32_t turn_ = 0, sum_ = 0,
           most_ = 0;                  // of the current policy: its runs, the sum of their times, the longest
  uint32_t runs_ = 0, slow_runs_ = 0;  // runs since the last trial; slow runs at their end
};

}  // namespace quernel::runtime
