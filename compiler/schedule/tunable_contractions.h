// The tilings that a file of choices may name for a schedule's contractions: the space that `quernel tune`
// searches.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace quernel::schedule {

struct TunableContraction {
  std::string text;  // the key of a choice
  // The text of the kernel that computes it now: the same text; or, for a convolution that Winograd's
  // algorithm may compute, the direct kernel's text.
  std::string kernel_text;
  std::vector<Tiling> tilings;  // worth a try, roughly the fastest first
};
// Returns each pair of texts once; includes contractions in bodies.
std::vector<TunableContraction> tunable_contractions(const Schedule& schedule, const Target& target);

}  // namespace quernel::schedule
