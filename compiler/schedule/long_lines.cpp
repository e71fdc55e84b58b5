#include "schedule/long_lines.h"

namespace quernel::schedule {

LongLines long_lines(const Target& target) {
  LongLines limits;
  if (target.is_gpu()) {
    limits.by_bounds = true;
    limits.longest = 8192;
    limits.longest_sorted = limits.sorted_block = 2048;
    limits.block = limits.arg_block = 1024;
    limits.most_kept = 2048;
  } else {
    limits.longest = 1 << 16;  // some 50 us
    limits.block = limits.arg_block = 8192;
    // The more blocks, the more elements are among the first of theirs for a while.
    limits.longest_sorted = 1 << 18;
    limits.sorted_block = 1 << 17;
    limits.most_kept = 16;
  }
  return limits;
}

}  // namespace quernel::schedule
