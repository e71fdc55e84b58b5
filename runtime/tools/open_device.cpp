#include "open_device.h"

#include <algorithm>

#include "runtime/core/feature_names.h"

namespace quernel::run {

std::string error_text(const qnl_error& error) {
  std::string text = qnl_status_text(error.status);
  return error.text[0] == '\0' ? text : text + ": " + error.text;
}

namespace {

bool is_device(const std::string& device, const char* kind) {
  std::string name = kind;
  return device == name || device.rfind(name + ":", 0) == 0;
}

#ifdef QUERNEL_WITH_VULKAN

constexpr double kAutoTimeoutSeconds = 60;

// What follows the colon, if anything does.
const char* selector(const std::string& device) {
  size_t colon = device.find(':');
  return colon == std::string::npos ? nullptr : device.c_str() + colon + 1;
}

#endif

}  // namespace

bool is_vulkan(const std::string& device) { return is_device(device, "vulkan"); }
bool is_auto(const std::string& device) { return is_device(device, "auto"); }

std::string check_device_name(const std::string& device) {
  if (device != "cpu" && !is_vulkan(device) && !is_auto(device))
    return std::string("expected ") + kDeviceHelp + ", found '" + device + "'";
#ifdef QUERNEL_STATIC_PROGRAMS
  if (is_vulkan(device))
    return "expected cpu or auto, this program is linked statically and cannot open Vulkan's loader "
           "(configure "
           "it with -DCMAKE_EXE_LINKER_FLAGS= -DQUERNEL_VULKAN=ON)";
#elif !defined(QUERNEL_WITH_VULKAN)
  if (is_vulkan(device))
    return "expected cpu or auto, this program was built without Vulkan (configure it with "
           "-DQUERNEL_VULKAN=ON)";
#endif
  return "";
}

#ifndef QUERNEL_WITH_VULKAN
std::string read_features(const std::string&, uint64_t*) {
  return "expected a quernel-run with Vulkan, whose features these are; found one without";
}
#else
std::string read_features(const std::string& names, uint64_t* features) {
  *features = 0;
  for (size_t begin = 0; begin <= names.size();) {
    size_t end = std::min(names.find(',', begin), names.size());
    std::string name = names.substr(begin, end - begin), known;
    uint64_t found = 0;
    for (uint32_t bit = 1; bit < 64; ++bit) {  // without Vulkan 1.1 there is no device
      const char* feature = runtime::feature_name(QNL_ARCH_SPIRV, bit);
      if (feature == nullptr) continue;
      known += (known.empty() ? "" : ", ") + std::string(feature);
      if (name == feature) found = uint64_t{1} << bit;
    }
    if (found == 0) return "expected features (" + known + "), found '" + name + "'";
    *features |= found;
    begin = end + 1;
  }
  return "";
}
#endif

qnl_status OpenedDevice::open(const DeviceChoice& choice, const Bundle& bundle, const std::string& path,
                              const qnl_session_options* session, qnl_error* error) {
#ifdef QUERNEL_WITH_VULKAN
  qnl_vulkan_options vulkan = {};
  vulkan.device = selector(choice.device);
  if (!choice.pipeline_cache.empty()) vulkan.cache_path = choice.pipeline_cache.c_str();
  double timeout = choice.timeout_seconds;
  if (timeout <= 0 && is_auto(choice.device)) timeout = kAutoTimeoutSeconds;
  if (timeout > 0) vulkan.timeout_nanoseconds = static_cast<uint64_t>(timeout * 1e9) + 1;
  vulkan.validation = choice.validation ? 1 : 0;
  if (choice.hidden != 0) vulkan.feature_mask = ~choice.hidden;
  vulkan.message = [](void* user, const char* text) {
    std::string& messages = *static_cast<std::string*>(user);
    messages += messages.empty() ? "" : "\n";
    messages += text;
  };
  vulkan.message_user = &messages;
  if (choice.device != "cpu") {
    if (qnl_status status = companion.open_cpu(choice.threads, error); status != QNL_OK) return status;
    vulkan.companion = companion.get();
  }
  if (is_vulkan(choice.device)) return device.open_vulkan(&vulkan, error);
  if (is_auto(choice.device)) {
    choice_file_ = choice.choice_file.empty() ? path + ".choice" : choice.choice_file;
    qnl_cpu_options cpu = {};
    cpu.threads = choice.threads;
    qnl_choice_options options = {};
    options.vulkan = &vulkan;
    options.cpu = &cpu;
    options.session = session;
    options.cache_path = choice_file_.c_str();
    options.check_anew = choice.choose_anew ? 1 : 0;
    qnl_status status = device.choose(bundle, &options, &choice_, error);
    if (choice_.is_vulkan == 0) companion = Device();
    chosen = choice_.is_vulkan != 0 ? "Vulkan" : "the CPU";
    // What is wrong with a device is said every time.
    bool known =
        choice_.is_cached != 0 && choice_.reason != QNL_CHOICE_WRONG && choice_.reason != QNL_CHOICE_FAILED;
    chosen += choice_.is_cached != 0 ? ", as decided before ('" + choice_file_ + "')" : "";
    if (!known) chosen += std::string(": ") + choice_.text;
    return status;
  }
#else
  (void)bundle, (void)path, (void)session;
  if (is_auto(choice.device)) chosen = "the CPU: this program was built without Vulkan";
#endif
  return device.open_cpu(choice.threads, error);
}

bool OpenedDevice::give_up(const qnl_error& error) {
#ifdef QUERNEL_WITH_VULKAN
  if (choice_.is_vulkan == 0) return false;
  if (error.status == QNL_DEVICE_FAULT) {
    qnl_choice_give_up(choice_file_.c_str(), &choice_, error.text);
    chosen = std::string("the CPU from now on: ") + choice_.text;
  } else if (error.status == QNL_OUT_OF_MEMORY) {
    chosen = "the CPU for this run: " + std::string(error.text);
  } else {
    return false;
  }
  device = Device();
  return true;
#else
  (void)error;
  return false;
#endif
}

}  // namespace quernel::run
