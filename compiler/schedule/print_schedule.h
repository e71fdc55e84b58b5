// The text of a schedule, for people: --print-after, `quernel inspect --schedule`, golden files.
#pragma once

#include <string>

#include "schedule/schedule.h"

namespace quernel::schedule {

// Before plan-memory: prints the groups with the values they store and read. After it: prints the items with
// their bindings.
std::string print(const Schedule& schedule);

}  // namespace quernel::schedule
