// Options that contradict each other, the targets or the graphs.
#pragma once

#include <string>
#include <vector>

#include "graph/ir.h"
#include "quernel/compiler.h"
#include "targets/target.h"

namespace quernel {

// What options.emit makes, in a diagnostic's words.
std::string name_of_form(Emit emit);

// The targets that options name, with the device profile's facts. Errors: one that cannot have what options
// ask for, and two that ask the same of a device.
Expected<std::vector<Target>> targets_of(const CompileOptions& options);

// Errors: rules of --place that can have no effect.
Status check_place_rules(const std::vector<Graph>& graphs, const std::vector<Target>& targets,
                         const CompileOptions& options);

}  // namespace quernel
