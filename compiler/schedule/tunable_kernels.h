// The choices that a file may make for a schedule's kernels: the space that `quernel tune` searches.
#pragma once

#include <string>
#include <vector>

#include "schedule/choices.h"
#include "schedule/schedule.h"

namespace quernel::schedule {

struct TunableKernel {
  std::string key;
  // The key of the kernel that computes it now: the same key; or, for a convolution that Winograd's
  // algorithm may compute, the direct kernel's key.
  std::string kernel_key;
  std::vector<Choice> choices;  // worth a try, roughly the fastest first
};
// Returns each pair of keys once; includes kernels in bodies.
std::vector<TunableKernel> tunable_kernels(const Schedule& schedule, const Target& target);

}  // namespace quernel::schedule
