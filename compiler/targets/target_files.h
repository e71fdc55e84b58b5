// One function per file of targets.def: its presets, weakest first. Only find_target.cpp calls them.
#pragma once

#include <vector>

#include "targets/target.h"

namespace quernel {

#define QUERNEL_TARGET_FILE(file) std::vector<Target> file##_targets();
#include "targets/targets.def"

}  // namespace quernel
