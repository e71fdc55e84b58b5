// The targets whose code this machine runs.
#pragma once

#include <string>
#include <vector>

#include "quernel/runtime.hpp"
#include "targets/target.h"

namespace quernel::testing {

inline std::vector<std::string> host_targets() {
  Device device;
  qnl_device_info info = {};
  if (device.open_cpu(1) == QNL_OK) qnl_device_get_info(device.get(), &info);
  std::vector<std::string> names;
  for (std::string_view name : target_names())
    if (uint64_t required = find_target(name)->required_features; (required & info.features) == required)
      names.emplace_back(name);
  return names;
}

}  // namespace quernel::testing
