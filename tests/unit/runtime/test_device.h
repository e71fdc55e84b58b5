// Devices of all kinds for tests of sessions, under the validation layers, which must have nothing to say,
// and what fixtures do with sessions on one of them.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "quernel/runtime.hpp"
#include "test_bundle.h"
#ifdef TEST_VULKAN
#include "test_spirv.h"
#endif

namespace quernel::test {

inline bool is_vulkan(const std::string& kind) { return kind.substr(0, 6) == "vulkan"; }
inline bool has_thread(const std::string& kind) { return kind.find("thread") != std::string::npos; }

// Empty where a device of the kind can be opened.
inline std::string why_not(const std::string& kind) {
#ifdef TEST_VULKAN
  if (is_vulkan(kind)) {
    static const std::string reason = why_no_vulkan();
    return reason;
  }
#endif
  return is_vulkan(kind) ? "built without Vulkan" : "";
}

// "null", "cpu", "cpu pool" (three threads), "vulkan", "vulkan copies" (as if it had memory of its own), each
// also with " thread".
struct OpenDevice {
  explicit OpenDevice(const std::string& kind, [[maybe_unused]] qnl_vulkan_options vulkan = {}) {
    qnl_error error = {};
    if (kind == "null") {
      EXPECT_EQ(device.open_null(&error), QNL_OK) << error.text;
    } else if (!is_vulkan(kind)) {
      EXPECT_EQ(device.open_cpu(kind.substr(0, 8) == "cpu pool" ? 3 : 1, &error), QNL_OK) << error.text;
    } else {
#ifdef TEST_VULKAN
      vulkan.validation = 2;
      vulkan.copy_always = kind.find("copies") != std::string::npos ? 1 : 0;
      vulkan.message = [](void* user, const char* text) { *static_cast<std::string*>(user) += text; };
      vulkan.message_user = &messages;
      EXPECT_EQ(device.open_vulkan(&vulkan, &error), QNL_OK) << error.text;
#endif
    }
    if (has_thread(kind)) {
      EXPECT_EQ(device.start_thread(&error), QNL_OK) << error.text;
    }
  }
  ~OpenDevice() { close(); }
  void close() {
    device = Device();
    EXPECT_EQ(messages, "") << "of the validation layers";
  }
  qnl_device* get() const { return device.get(); }

  std::string messages;
  Device device;
};

// The contents with a variant for each of these devices.
inline bundle::BundleContents contents_for(const bundle::BundleContents& contents) {
#ifdef TEST_VULKAN
  return with_vulkan(contents);
#else
  return contents;
#endif
}

// For fixtures: a device, a bundle of test_bundle.h, and sessions of its entry points.
class SessionsOnDevice {
 protected:
  void open(const bundle::BundleContents& contents) {
    bundle_ = Bundle();
    bytes_.emplace(bundle_bytes(contents_for(contents)));
    ASSERT_EQ(bundle_.open(bytes_->data(), bytes_->size(), nullptr, &error_), QNL_OK) << error_.text;
  }
  qnl_status create(Session* session, const char* entry, qnl_session_options options = {}) {
    options.entry_point = entry;
    return session->create(bundle_, device_->device, &options, &error_);
  }
  Session session(const char* entry, const qnl_session_options& options = {}) {
    Session session;
    EXPECT_EQ(create(&session, entry, options), QNL_OK) << error_.text;
    return session;
  }
  // Inputs of entry point "main", whose output is then 4 * value + 1, and of "accumulate".
  void set_main(Session& session, float value) {
    std::vector<float> values(kElements, value);
    for (const char* name : {"a", "b"})
      ASSERT_EQ(session.set_input(tensor(name, QNL_F32, {64, 64}, values), &error_), QNL_OK) << error_.text;
  }
  void set_x(Session& session, float value) {
    std::vector<float> values(16, value);
    ASSERT_EQ(session.set_input(tensor("x", QNL_F32, {16}, values), &error_), QNL_OK) << error_.text;
  }
  // The output's first element; -1 where the process does not reach it.
  float result(Session& session, const char* name) {
    qnl_tensor found = {};
    EXPECT_EQ(session.tensor(QNL_OUTPUT, name, &found, &error_), QNL_OK) << error_.text;
    return found.data == nullptr ? -1.0f : static_cast<float*>(found.data)[0];
  }
  // Runs "accumulate": what its state is then.
  float add(Session& session, float value) {
    set_x(session, value);
    EXPECT_EQ(session.run(&error_), QNL_OK) << error_.text;
    return result(session, "y");
  }
  qnl_event* submit(Session& session, std::vector<qnl_event*> wait_for = {}) {
    qnl_submit_options options = {};
    options.wait_for = wait_for.data();
    options.wait_for_count = static_cast<uint32_t>(wait_for.size());
    qnl_event* event = nullptr;
    EXPECT_EQ(session.submit(&event, &options, &error_), QNL_OK) << error_.text;
    return event;
  }
  qnl_status wait(qnl_event* event) { return qnl_event_wait(event, ~uint64_t{0}, &error_); }

  std::optional<OpenDevice> device_;
  std::optional<AlignedBytes> bytes_;
  Bundle bundle_;
  qnl_error error_ = {};
};

}  // namespace quernel::test
