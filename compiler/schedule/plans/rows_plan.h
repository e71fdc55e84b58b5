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
  // On a CPU: rows that are reduced together, as many as a vector has lanes, of which each gets the result of a row; what
  // each row has one of is computed in such vectors, too. 1: a row at a time.
  int together = 1;
  std::vector<RowLoad> kept;  // what several stages load, and registers hold from the first of them on
};

}  // namespace quernel::schedule
