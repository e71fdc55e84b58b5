// The devices that the tools' --device names.
#pragma once

#include <stdint.h>

#include <string>

#include "quernel/runtime.hpp"

namespace quernel::run {

// "cpu", "vulkan" or "auto", the last two also with ":" and a number, a type or a part of a name.
inline constexpr const char* kDeviceHelp =
    "cpu, vulkan, or auto; vulkan:D and auto:D with a number, a type or a part of a name";
bool is_vulkan(const std::string& device);
bool is_auto(const std::string& device);  // Vulkan where it is right and faster, else the CPU
// A message when --device does not understand it, else "".
std::string check_device_name(const std::string& device);

struct DeviceChoice {
  std::string device = "cpu";
  uint32_t threads = 1;        // of the CPU, also beside a Vulkan device
  bool validation = false;     // Vulkan under the validation layers
  std::string pipeline_cache;  // file; empty: none
  double timeout_seconds = 0;  // of a submission to Vulkan; 0: for ever, with auto a minute
  std::string choice_file;     // that keeps what auto has decided; empty: BUNDLE.choice
  bool choose_anew = false;
};

// A device, how it was chosen, and what its validation layers have said; stays where it is.
struct OpenedDevice {
  OpenedDevice() = default;
  OpenedDevice(const OpenedDevice&) = delete;
  OpenedDevice& operator=(const OpenedDevice&) = delete;

  // `bundle` is what will run, from the file `path`, in sessions of these options (null: the defaults).
  qnl_status open(const DeviceChoice& choice, const Bundle& bundle, const std::string& path,
                  const qnl_session_options* session, qnl_error* error);
  // Whether the program can go on with the CPU: auto has chosen another device, and that is lost or has no
  // memory. Of one that is lost, auto chooses the CPU from now on. Closes the device, whose sessions are
  // gone.
  bool give_up(const qnl_error& error);

  std::string messages;
  std::string chosen;  // what auto has chosen and why, one line; empty without auto
  Device host;         // beside a Vulkan device
  Device device;

 private:
  std::string choice_file_;
  qnl_choice choice_ = {};
};

// "shape mismatch: input 'x': …"; of a runtime without texts (QUERNEL_ERROR_TEXTS) "shape mismatch".
std::string error_text(const qnl_error& error);

}  // namespace quernel::run
