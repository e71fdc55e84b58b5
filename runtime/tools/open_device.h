// Opens the devices of the tools' option --device.
#pragma once

#include <stdint.h>

#include <string>

#include "quernel/runtime.hpp"

namespace quernel::run {

// "cpu", "vulkan" or "auto". The last two may be followed by ":" and a number, a type or a part of a name.
inline constexpr const char* kDeviceHelp =
    "cpu, vulkan, or auto; vulkan:D and auto:D with a number, a type or a part of a name";
bool is_vulkan(const std::string& device);
bool is_auto(const std::string& device);  // Vulkan if it is right and faster, else the CPU
// Returns a message if the name is not a device, else "".
std::string check_device_name(const std::string& device);

// Finds the bits of optional features of Vulkan devices, "subgroups,float16". Returns a message if a name is unknown, else
// "".
std::string read_features(const std::string& names, uint64_t* features);

struct DeviceChoice {
  std::string device = "cpu";
  uint32_t threads = 1;        // of the CPU, also as a companion of Vulkan
  bool validation = false;     // Vulkan with the validation layer
  uint64_t hidden = 0;         // QNL_SPIRV_* features that a Vulkan device is not asked for
  std::string pipeline_cache;  // file; empty: none
  double timeout_seconds = 0;  // for a Vulkan submission; 0: no limit, with auto 60
  std::string choice_file;     // keeps the decision of auto; empty: BUNDLE.choice
  bool choose_anew = false;
};

// A device, how it was chosen, and the messages of its validation layer. Must not move.
struct OpenedDevice {
  OpenedDevice() = default;
  OpenedDevice(const OpenedDevice&) = delete;
  OpenedDevice& operator=(const OpenedDevice&) = delete;

  // Opens the device for `bundle`, read from the file `path`, with sessions of these options (null: the
  // defaults).
  qnl_status open(const DeviceChoice& choice, const Bundle& bundle, const std::string& path,
                  const qnl_session_options* session, qnl_error* error);
  // Closes the device and returns true if the program can go on with the CPU: auto has chosen Vulkan, and the
  // device is lost or has no memory. After a loss, auto chooses the CPU from now on. The device's sessions
  // must have been destroyed.
  bool give_up(const qnl_error& error);

  std::string messages;
  std::string chosen;  // what auto chose and why, one line; empty without auto
  Device companion;    // companion CPU of a Vulkan device
  Device device;

 private:
  std::string choice_file_;
  qnl_choice choice_ = {};
};

// Returns "shape mismatch: input 'x': …"; "shape mismatch" if the runtime has no texts (QUERNEL_ERROR_TEXTS).
std::string error_text(const qnl_error& error);

}  // namespace quernel::run
