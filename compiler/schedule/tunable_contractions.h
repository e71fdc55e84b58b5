// What a file of choices may say about the contractions of a schedule: the space that `quernel tune`
// searches.
#pragma once

#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace quernel::schedule {

struct TunableContraction {
  std::string text;             // by which a choice is found
  std::string kernel_text;      // of the kernel that computes it now: the same, or where Winograd's algorithm
                                // might compute a convolution, that of the direct kernel
  std::vector<Tiling> tilings;  // worth a try, of the fewest estimated cycles first
};
// Each pair of texts once, also of contractions in bodies.
std::vector<TunableContraction> tunable_contractions(const Schedule& schedule, const Target& target);

}  // namespace quernel::schedule
