// The targets whose code this machine runs.
#pragma once

#include <string>
#include <vector>

#include "targets/target.h"

namespace quernel {

// Presets, and the last of them with what this machine has beyond it.
inline std::vector<std::string> host_targets() {
  std::vector<std::string> names;
  if (Expected<Target> host = find_target("native"))
    for (std::string_view name : target_names())
      if (runs_code_of(*host, *find_target(name))) names.emplace_back(name);
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512bf16")) names.push_back(names.back() + "+bf16");
#endif
  return names;
}

}  // namespace quernel
