// Programs that would need more RAM than CompileOptions::max_ram: wide layers are computed in strips of rows.
#pragma once

#include <string>
#include <vector>

#include "graph/ir.h"
#include "quernel/compiler.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel {

struct FittedGraph {
  Graph graph;
  std::vector<std::string> notes;  // what is computed in strips, and what that costs
};

// Requires an optimized graph. Returns it as it is where its workspace and states fit options.max_ram (0: always), or
// sizes are known at run time only. Else the graph with the fewest multiply-adds that fits, of those with strips between layers around the largest
// need; if none fits, the one that needs least.
Expected<FittedGraph> fit_ram(Graph graph, const Target& target, const CompileOptions& options);

}  // namespace quernel
