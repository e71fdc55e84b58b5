// Thin C++ over runtime.h: owning handles that close themselves, and the C functions as members. No
// exceptions: every call that can fail returns qnl_status and fills an optional qnl_error.
#ifndef QUERNEL_RUNTIME_HPP_
#define QUERNEL_RUNTIME_HPP_

#include <memory>

#include "quernel/runtime.h"

namespace quernel {

namespace detail {
struct Close {
  void operator()(qnl_bundle* bundle) const { qnl_bundle_close(bundle); }
  void operator()(qnl_device* device) const { qnl_device_close(device); }
  void operator()(qnl_session* session) const { qnl_session_destroy(session); }
};
}  // namespace detail

// A model file, opened and checked. Must outlive its sessions.
class Bundle {
 public:
  [[nodiscard]] qnl_status open(const char* path, const qnl_bundle_options* options = nullptr,
                                qnl_error* error = nullptr) {
    qnl_bundle* bundle = nullptr;
    qnl_status status = qnl_bundle_open_file(path, options, &bundle, error);
    handle_.reset(bundle);
    return status;
  }
  [[nodiscard]] qnl_status open(const void* data, uint64_t bytes, const qnl_bundle_options* options = nullptr,
                                qnl_error* error = nullptr) {
    qnl_bundle* bundle = nullptr;
    qnl_status status = qnl_bundle_open_memory(data, bytes, options, &bundle, error);
    handle_.reset(bundle);
    return status;
  }
  qnl_bundle_info info() const {
    qnl_bundle_info info;
    qnl_bundle_get_info(handle_.get(), &info);
    return info;
  }
  qnl_bundle* get() const { return handle_.get(); }

 private:
  std::unique_ptr<qnl_bundle, detail::Close> handle_;
};

// The device that runs kernels. Must outlive its sessions.
class Device {
 public:
  [[nodiscard]] qnl_status open_cpu(uint32_t threads = 1, qnl_error* error = nullptr) {
    qnl_cpu_options options = {};
    options.threads = threads;
    qnl_device* device = nullptr;
    qnl_status status = qnl_device_open_cpu(&options, &device, error);
    handle_.reset(device);
    return status;
  }
  // Requires a runtime built with Vulkan.
  [[nodiscard]] qnl_status open_vulkan(const qnl_vulkan_options* options = nullptr,
                                       qnl_error* error = nullptr) {
    qnl_device* device = nullptr;
    qnl_status status = qnl_device_open_vulkan(options, &device, error);
    handle_.reset(device);
    return status;
  }
  [[nodiscard]] qnl_status open_null(qnl_error* error = nullptr) {
    qnl_device* device = nullptr;
    qnl_status status = qnl_device_open_null(&device, error);
    handle_.reset(device);
    return status;
  }
  // Opens the device to run the bundle on (qnl_device_choose).
  [[nodiscard]] qnl_status choose(const Bundle& bundle, const qnl_choice_options* options, qnl_choice* choice,
                                  qnl_error* error = nullptr) {
    qnl_device* device = nullptr;
    qnl_status status = qnl_device_choose(bundle.get(), options, &device, choice, error);
    handle_.reset(device);
    return status;
  }
  // Starts the thread for asynchronous runs of the device's sessions.
  [[nodiscard]] qnl_status start_thread(qnl_error* error = nullptr) {
    return qnl_device_start_thread(get(), error);
  }
  qnl_device* get() const { return handle_.get(); }

 private:
  std::unique_ptr<qnl_device, detail::Close> handle_;
};

// One entry point, placed and ready to run.
class Session {
 public:
  [[nodiscard]] qnl_status create(const Bundle& bundle, const Device& device,
                                  const qnl_session_options* options = nullptr, qnl_error* error = nullptr) {
    qnl_session* session = nullptr;
    qnl_status status = qnl_session_create(bundle.get(), device.get(), options, &session, error);
    handle_.reset(session);
    return status;
  }
  [[nodiscard]] qnl_status set_input(const qnl_tensor& tensor, qnl_error* error = nullptr) {
    return qnl_session_set_input(get(), &tensor, error);
  }
  [[nodiscard]] qnl_status bind_input(const qnl_tensor& tensor, qnl_error* error = nullptr) {
    return qnl_session_bind(get(), QNL_INPUT, &tensor, error);
  }
  [[nodiscard]] qnl_status bind_output(const qnl_tensor& tensor, qnl_error* error = nullptr) {
    return qnl_session_bind(get(), QNL_OUTPUT, &tensor, error);
  }
  // Returns an input, output or state with its current memory in *out; name nullptr: the only one of its
  // role.
  [[nodiscard]] qnl_status tensor(qnl_tensor_role role, const char* name, qnl_tensor* out,
                                  qnl_error* error = nullptr) {
    return qnl_session_get(get(), role, name, out, error);
  }
  // Call this before filling an input of symbolic shape in place.
  [[nodiscard]] qnl_status set_shape(const qnl_tensor& tensor, qnl_error* error = nullptr) {
    return qnl_session_set_shape(get(), &tensor, error);
  }
  [[nodiscard]] qnl_status set_symbol(const char* name, int64_t value, qnl_error* error = nullptr) {
    return qnl_session_set_symbol(get(), name, value, error);
  }
  [[nodiscard]] qnl_status reserve(const qnl_symbol_value* symbols, uint32_t count,
                                   qnl_error* error = nullptr) {
    return qnl_session_reserve(get(), symbols, count, error);
  }
  [[nodiscard]] qnl_status run(qnl_error* error = nullptr) { return qnl_session_run(get(), error); }
  // *event belongs to the session.
  [[nodiscard]] qnl_status submit(qnl_event** event, const qnl_submit_options* options = nullptr,
                                  qnl_error* error = nullptr) {
    return qnl_session_submit(get(), options, event, error);
  }
  void cancel() { qnl_session_cancel(get()); }
  qnl_session* get() const { return handle_.get(); }

 private:
  std::unique_ptr<qnl_session, detail::Close> handle_;
};

}  // namespace quernel

#endif  // QUERNEL_RUNTIME_HPP_
