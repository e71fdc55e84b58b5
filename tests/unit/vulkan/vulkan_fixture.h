// Tests of what only a Vulkan device does: on one with memory that the process reaches and on one that
// copies.
#pragma once

#include "test_device.h"
#include "vulkan/vulkan_counts.h"

namespace quernel::test {

inline runtime::vulkan::Counts counts(const OpenDevice& device) {
  return runtime::vulkan::counts(device.get());
}

inline const char* vulkan_kind(bool copies) { return copies ? "vulkan copies" : "vulkan"; }

// Tests with the parameter: does the device copy? A derived SetUp has no device where the test is skipped.
class VulkanTest : public testing::TestWithParam<bool>, protected SessionsOnDevice {
 protected:
  void SetUp() override {
    if (std::string reason = why_not("vulkan"); !reason.empty()) GTEST_SKIP() << reason;
    device_.emplace(vulkan_kind(GetParam()));
  }
  qnl_device* device() const { return device_->get(); }
  runtime::vulkan::Counts counts() const { return test::counts(*device_); }
};

inline std::string memory_name(const testing::TestParamInfo<bool>& info) {
  return info.param ? "copies" : "unified";
}

}  // namespace quernel::test
