// Checks a schedule between its steps.
#pragma once

#include <string>

#include "schedule/schedule.h"
#include "support/expected.h"

namespace quernel::schedule {

// Returns an internal error, with the name of the step, where the schedule breaks a rule of what is filled so far: its
// graph is valid; a node is in one group, which has its own outputs only; what a group or item reads has been
// stored before it, and has a place; items depend on earlier ones.
Status verify(const Schedule& schedule, const std::string& after);

}  // namespace quernel::schedule
