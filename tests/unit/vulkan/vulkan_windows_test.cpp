// Windows: few ranges that cover the bindings of a dispatch.
#include "vulkan/vulkan_windows.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace quernel::runtime::vulkan {
namespace {

const auto kOne = reinterpret_cast<VkBuffer>(uintptr_t{16});
const auto kTwo = reinterpret_cast<VkBuffer>(uintptr_t{32});
constexpr uint64_t kBuffer = 1 << 20;

struct Found {
  qnl_status status;
  Window windows[kWindows];
  WindowMap map;
  qnl_error error = {};
};

Found find(const std::vector<WindowBinding>& bindings, uint64_t max_bytes = kBuffer) {
  Found found;
  Failure failure(&found.error, QNL_INVALID_ARGUMENT);
  found.status = find_windows({16, max_bytes}, bindings.data(), static_cast<uint32_t>(bindings.size()),
                              found.windows, &found.map, &failure);
  // Whatever was found, a binding lies in its window, which begins at a multiple of the alignment.
  for (uint32_t b = 0; b < bindings.size() && found.status == QNL_OK; ++b) {
    if ((found.map.split >> b & 1) != 0) continue;
    const Window& window = found.windows[found.map.get(b)];
    EXPECT_EQ(window.buffer, bindings[b].buffer);
    EXPECT_EQ(window.offset % 16, 0u);
    EXPECT_LE(window.offset, bindings[b].offset);
    EXPECT_GE(window.offset + window.bytes, bindings[b].offset + bindings[b].bytes);
    EXPECT_LE(window.bytes, max_bytes);
  }
  return found;
}

TEST(VulkanWindows, each_binding_has_its_own_where_they_are_few) {
  Found found = find({{kTwo, 100, 8, kBuffer}, {kOne, 0, 50, kBuffer}, {kTwo, 64, 20, kBuffer}});
  ASSERT_EQ(found.status, QNL_OK);
  for (uint32_t b = 0; b < 3; ++b) EXPECT_EQ(found.map.get(b), b);
  EXPECT_EQ(found.windows[0].offset, 96u);
  EXPECT_EQ(found.windows[0].bytes, 12u);
  EXPECT_EQ(found.windows[1].bytes, 52u) << "whole words";
  EXPECT_EQ(found.windows[3].buffer, kTwo) << "none is left empty";
}

TEST(VulkanWindows, what_overlaps_shares_one) {
  Found found = find({{kOne, 0, 64, kBuffer}, {kOne, 128, 64, kBuffer}, {kOne, 32, 64, kBuffer}});
  ASSERT_EQ(found.status, QNL_OK);
  EXPECT_EQ(found.map.get(0), found.map.get(2));
  EXPECT_NE(found.map.get(0), found.map.get(1));
}

TEST(VulkanWindows, neighbours_are_joined_where_there_are_many) {
  std::vector<WindowBinding> bindings;
  for (uint64_t i = 0; i < 40; ++i) bindings.push_back({i % 2 == 0 ? kOne : kTwo, i * 1000, 500, kBuffer});
  Found found = find(bindings);
  ASSERT_EQ(found.status, QNL_OK) << found.error.text;
  found = find(bindings, 25000);
  ASSERT_EQ(found.status, QNL_OK) << found.error.text;
}

TEST(VulkanWindows, what_cannot_be_covered_is_refused) {
  std::vector<WindowBinding> bindings;
  for (uint64_t i = 0; i < 5; ++i) bindings.push_back({kOne, i * 10000, 16, kBuffer});
  Found found = find(bindings, 5000);
  EXPECT_EQ(found.status, QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(found.error.text,
               "its 5 bindings need 5 storage buffers of at most 5000 bytes, expected at most 4");
  found = find({{kOne, 0, 6000, kBuffer}}, 5000);
  EXPECT_EQ(found.status, QNL_INVALID_ARGUMENT);
  EXPECT_STREQ(found.error.text,
               "its bindings need a storage buffer of 6000 bytes, the device's have at most 5000");
}

TEST(VulkanWindows, what_is_larger_than_one_is_split_where_the_kernel_can) {
  // 4864 bytes a piece: the largest multiple of 256.
  Found found = find({{kTwo, 0, 16, kBuffer, true}, {kOne, 40, 12000, kBuffer, true}}, 5000);
  ASSERT_EQ(found.status, QNL_OK) << found.error.text;
  EXPECT_EQ(found.map.split, 2u) << "the other fits";
  EXPECT_EQ(found.map.get(1), 1u);
  for (uint32_t w = 1; w < 4; ++w) {
    EXPECT_EQ(found.windows[w].buffer, kOne);
    EXPECT_EQ(found.windows[w].offset, 32 + (w - 1) * 4864u);
    EXPECT_EQ(found.windows[w].bytes, w < 3 ? 4864u : 12008u - 2 * 4864u);
  }
  // The two that overlap are split together.
  found = find({{kOne, 0, 8000, kBuffer, true}, {kOne, 4000, 8000, kBuffer, true}}, 5000);
  ASSERT_EQ(found.status, QNL_OK) << found.error.text;
  EXPECT_EQ(found.map.split, 3u);
  EXPECT_EQ(found.map.get(0), found.map.get(1));
  found = find({{kOne, 0, 8000, kBuffer, true}, {kOne, 4000, 16, kBuffer, false}}, 5000);
  EXPECT_STREQ(found.error.text,
               "its bindings need a storage buffer of 8000 bytes, the device's have at most 5000");
  found = find({{kOne, 0, 12000, kBuffer, true}, {kTwo, 0, 6000, kBuffer, true}}, 5000);
  EXPECT_STREQ(found.error.text,
               "its 2 bindings need 5 storage buffers of at most 5000 bytes, expected at most 4");
}

TEST(VulkanWindows, bindings_without_memory_need_none) {
  Found found = find({{VK_NULL_HANDLE, 0, 0, 0}});
  ASSERT_EQ(found.status, QNL_OK);
  EXPECT_EQ(found.windows[0].buffer, VkBuffer{VK_NULL_HANDLE});
}

TEST(VulkanWindows, the_last_word_of_a_buffer_is_not_exceeded) {
  Found found = find({{kOne, 60, 2, 62}});
  ASSERT_EQ(found.status, QNL_OK);
  EXPECT_EQ(found.windows[0].offset + found.windows[0].bytes, 62u);
}

}  // namespace
}  // namespace quernel::runtime::vulkan
