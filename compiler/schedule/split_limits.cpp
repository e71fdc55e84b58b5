#include "schedule/split_limits.h"

namespace quernel::schedule {

LongLines line_limits(const Target& target) {
  LongLines limits;
  if (target.lanes_are_invocations()) {
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
    limits.most_grouped = 1024;
  }
  return limits;
}

LongScatters scatter_limits(const Target& target) {
  if (target.lanes_are_invocations())
    return {.longest = 1 << 16, .part = 1 << 14, .free_parts = 64, .most_results = 1 << 22};
  return {.columns_count = true, .longest = 1 << 18, .part = 1 << 17, .most_places = 2};
}

ReductionLimits reduction_limits(const Target& target) {
  ReductionLimits limits{.least_shared = 1 << 18,
                         .enough_workgroups = 8,
                         .part_work = 1 << 17,
                         .fewest_terms = 64,
                         .most_terms = 1 << 22,
                         .most_work = 1 << 22,
                         .most_together = 1 << 22,
                         .longest_row = 1 << 16};
  if (!target.lanes_are_invocations()) return limits;
  limits.least_shared = 1 << 16;
  limits.enough_workgroups = 32;
  limits.part_work = 1 << 13;
  limits.most_terms = limits.longest_row = 1 << 15;
  limits.most_together = target.lanes(4);
  return limits;
}

ContractionLimits contraction_limits(const Target& target) {
  ContractionLimits limits{.most_terms = 1 << 20,
                           .part_terms = 1 << 13,
                           .longest_shared = 1 << 14,
                           .few_results = 1 << 8,
                           .least_shared = 1 << 20};
  if (!target.lanes_are_invocations()) return limits;
  limits.most_terms = 1 << 15;
  limits.few_results = 1 << 10;
  // The parts' sum is a kernel more, which takes as long as hundreds of dependent multiply-adds.
  limits.busy_results = target.parallel_invocations;
  limits.busy_terms = 256;
  return limits;
}

}  // namespace quernel::schedule
