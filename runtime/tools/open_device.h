// The devices that the tools' --device names.
#pragma once

#include <stdint.h>

#include <string>

#include "quernel/runtime.hpp"

namespace quernel::run {

// "cpu", "vulkan", or "vulkan:" and a number, a type or a part of a name.
inline constexpr const char* kDeviceHelp =
    "cpu, vulkan, or vulkan:D with a number, a type or a part of a name";
bool is_vulkan(const std::string& device);
// A message when --device does not understand it, else "".
std::string check_device_name(const std::string& device);

struct DeviceChoice {
  std::string device = "cpu";
  uint32_t threads = 1;        // of the CPU
  bool validation = false;     // Vulkan under the validation layers
  std::string pipeline_cache;  // file; empty: none
};

// A device and what its validation layers have said; stays where it is.
struct OpenedDevice {
  OpenedDevice() = default;
  OpenedDevice(const OpenedDevice&) = delete;
  OpenedDevice& operator=(const OpenedDevice&) = delete;

  qnl_status open(const DeviceChoice& choice, qnl_error* error);

  std::string messages;
  Device device;
};

}  // namespace quernel::run
