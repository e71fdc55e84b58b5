// What can be chosen about the loops of a kernel that walks over elements, as data with a text form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quernel::schedule {

// Text: "along 1 tiles 16 across 0 group 8192", "along 2 windows 4 rows 3", "along none", "group 4096". Axes are
// those of the plan, the outermost is 0. What the text leaves out is estimated, but tiles and windows are those
// that it says, if it says the axis.
struct LoopChoice {
  static constexpr int kEstimated = -2, kNone = -1;

  int along = kEstimated;  // the axis that runs in vectors
  int64_t tiles = 0;       // side of the tiles that are transposed; 0: none
  int across = kNone;      // their other axis
  int windows = kNone;     // the reduced axis along which windows slide, reduced in two steps
  int64_t rows = 0;        // of windows that go through each step together; 0: as estimated
  int64_t group_work = 0;  // work of a workgroup, as WorkPlan has it; 0: as estimated
  bool operator==(const LoopChoice&) const = default;
};
std::string to_string(const LoopChoice& choice);
// Returns the choice of a text's words, if they are one's.
std::optional<LoopChoice> parse_loop_choice(const std::vector<std::string_view>& words);

}  // namespace quernel::schedule
