#include "open_device.h"

namespace quernel::run {

bool is_vulkan(const std::string& device) { return device == "vulkan" || device.rfind("vulkan:", 0) == 0; }

std::string check_device_name(const std::string& device) {
  if (device != "cpu" && !is_vulkan(device))
    return std::string("expected ") + kDeviceHelp + ", found '" + device + "'";
#ifndef QUERNEL_WITH_VULKAN
  if (is_vulkan(device))
    return "expected cpu, this program was built without Vulkan (configure it with "
           "-DQUERNEL_VULKAN=ON)";
#endif
  return "";
}

qnl_status OpenedDevice::open(const DeviceChoice& choice, qnl_error* error) {
#ifdef QUERNEL_WITH_VULKAN
  if (is_vulkan(choice.device)) {
    qnl_vulkan_options options = {};
    if (choice.device.size() > 7) options.device = choice.device.c_str() + 7;
    if (!choice.pipeline_cache.empty()) options.cache_path = choice.pipeline_cache.c_str();
    options.validation = choice.validation ? 1 : 0;
    options.message = [](void* user, const char* text) {
      std::string& messages = *static_cast<std::string*>(user);
      messages += messages.empty() ? "" : "\n";
      messages += text;
    };
    options.message_user = &messages;
    return device.open_vulkan(&options, error);
  }
#endif
  return device.open_cpu(choice.threads, error);
}

}  // namespace quernel::run
