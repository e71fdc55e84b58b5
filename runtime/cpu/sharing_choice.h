// Which kernels of a recording threads share, found by trying. Where cores are far apart, or others use them,
// moving a small kernel's operands to the other core takes longer than the kernel, and no estimate knows it.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

class SharingChoice {
 public:
  // What is shared: kernels that are worth waking a thread for, large ones, none.
  static constexpr uint32_t kLevels = 3;
  static constexpr uint32_t kTimeUnit = 64;  // nanoseconds; 32 bits reach to minutes

  // `now`: by a clock that may wrap between runs.
  void begin_run(uint32_t now) {
    work_ = kinds_ = 0;
    begin_ = now;
  }
  // Whether threads share the run's next kernel, which takes one thread so many nanoseconds by estimate.
  bool shares(uint32_t estimate);
  // The run has had all its kernels.
  void end_run(uint32_t now);

  uint32_t level() const { return level_; }

 private:
  void begin_trial();

  uint32_t level_ = 0, best_ = 0;
  uint32_t best_time_ = 0;  // of best_, at its last trial
  // The present run: the sum of its estimates, which may wrap, for it tells shapes apart; a bit for each kind
  // of kernels: too small to share, small, large.
  uint32_t work_ = 0, kinds_ = 0, begin_ = 0;
  uint32_t compared_work_ = 0;              // of the runs that are compared
  uint32_t first_ = 0;                      // when the first of them ended
  uint32_t untried_ = 0;                    // levels of this trial, a bit each; 0: there is none
  uint32_t turn_ = 0, sum_ = 0, most_ = 0;  // of the present level: turns and their times
  uint32_t runs_ = 0, slow_runs_ = 0;       // since the last trial; at the end of these
};

}  // namespace quernel::runtime
