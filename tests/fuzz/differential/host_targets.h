// The targets whose code this machine runs.
#pragma once

#include <string>
#include <vector>

#include "targets/target.h"

namespace quernel::testing {

inline std::vector<std::string> host_targets() {
  std::vector<std::string> names;
  if (Expected<Target> host = find_target("native"))
    for (std::string_view name : target_names())
      if (runs_code_of(*host, *find_target(name))) names.emplace_back(name);
  return names;
}

}  // namespace quernel::testing
