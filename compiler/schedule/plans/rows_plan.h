// Where a kernel over rows keeps values between its stages, as data.
#pragma once

#include <vector>

#include "schedule/plans/loop_plan.h"

namespace quernel::schedule {

// A load of an element for each column, by the stages `first` to `last`.
struct RowLoad {
  ElementLoad load;
  int first = 0, last = 0;
};

struct RowsPlan {
  int lanes = 1;  // of vectors along rows
  // On a GPU: rows between stages are in registers, of which each invocation has its own columns. If false,
  // they are in memory.
  bool in_registers = false;
  std::vector<RowLoad> kept;  // what several stages load, and registers hold from the first of them on
};

}  // namespace quernel::schedule
