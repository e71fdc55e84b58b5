// Lowers one item of a schedule to one kernel of loop IR, with axis kinds on its loops (vector, unrolled,
// serial, reduction).
#pragma once

#include "loop/ir.h"
#include "schedule/schedule.h"

namespace quernel::lower {

struct LoweredItem {
  loop::Kernel kernel;
  std::vector<Dim> symbols;  // the kernel's launch-time symbols, in order
  Dim workgroups;  // the product of its grid; negative if the group has no result (graph/empty_choice.h)
  bool may_fail = false;  // whether workgroups may be negative
  // The most iterations of one invocation's loops, where the kernel does not show them (count_iterations.h).
  std::optional<Dim> iterations;
};

// Returns the kernel of an item that has a group, named after the group's kind. Requires a group with a
// kernel: not kControl or kCustom.
LoweredItem lower_item(const schedule::Schedule& schedule, const schedule::Item& item, const Target& target);

}  // namespace quernel::lower
