// A Vulkan device under the validation layers, which must have nothing to say.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "quernel/runtime.hpp"
#include "test_bundle.h"
#include "test_spirv.h"
#include "vulkan/vulkan_counts.h"

namespace quernel::test {

struct VulkanDevice {
  // copies: as if the device had memory of its own.
  explicit VulkanDevice(bool copies, qnl_vulkan_options options = {}) {
    options.validation = 2;
    options.copy_always = copies ? 1 : 0;
    options.message = [](void* user, const char* text) { *static_cast<std::string*>(user) += text; };
    options.message_user = &messages;
    qnl_error error = {};
    EXPECT_EQ(owner.open_vulkan(&options, &error), QNL_OK) << error.text;
    device = owner.get();
  }
  ~VulkanDevice() { close(); }
  void close() {
    owner = Device();
    device = nullptr;
    EXPECT_EQ(messages, "") << "of the validation layers";
  }
  runtime::vulkan::Counts counts() const { return runtime::vulkan::counts(device); }

  std::string messages;
  Device owner;
  qnl_device* device = nullptr;
};

// Tests with the parameter: does the device copy?
class VulkanTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    static const std::string reason = why_no_vulkan();
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
};

inline std::string memory_name(const testing::TestParamInfo<bool>& info) {
  return info.param ? "copies" : "unified";
}

}  // namespace quernel::test
