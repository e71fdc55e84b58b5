// Checks a schedule between its steps.
#pragma once

#include <string>

#include "schedule/schedule.h"
#include "support/expected.h"

namespace quernel::schedule {

// Returns an internal error, with the name of the step, if the parts filled so far break a rule: the graph is
// valid; a node is in one group, and a group has only its own outputs; what a group or item reads has been
// stored before it, and has a place; items depend on earlier ones; a planned kernel
// has the plans of its kind, over its own axes.
Status verify(const Schedule& schedule, const std::string& after);

}  // namespace quernel::schedule
