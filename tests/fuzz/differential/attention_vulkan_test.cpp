// Attention kernels on the machine's Vulkan device against the interpreter: compiled for the least memory of
// workgroups and for GPUs with local memory, sizes with and without tails, all keys at a time and in parts,
// masks, several batches and heads, rows without a finite number.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "attention_graphs.h"
#include "on_vulkan.h"
#include "targets/device_profile.h"

namespace quernel::testing {
namespace {

// Devices that a single workgroup keeps busy and whose memory is slow, so that whatever fits is one kernel:
// of the least memory for workgroups, then with more of it, which is local.
const char* const kProfiles[] = {
    "parallel_invocations 64\nmemory_bytes_per_second 1e8\n",
    "parallel_invocations 64\nmemory_bytes_per_second 1e8\nlocal_memory 1\nregisters 128\n"
    "workgroup_memory 32768\n",
};

Expected<Target> vulkan_with(const char* profile) {
  Expected<Target> target = find_target("vulkan");
  if (target) QUERNEL_CHECK(apply_device_profile(*target, profile, "profile"));
  return target;
}

Tensor with_first(const Tensor& mask, int64_t count, float value) {
  std::vector<float> values;
  for (int64_t i = 0; i < mask.count(); ++i) values.push_back(i < count ? value : mask.at<float>(i));
  return f32_tensor(mask.dims, values);
}

struct VulkanCase {
  AttentionCase graph;
  const char* kernel = "attention";  // with the first profile
};

const VulkanCase kCases[] = {
    {{1, 2, 16, 16, 8, 16, false, false}},
    {{2, 3, 50, 33, 20, 7, true, false}},
    {{1, 1, 197, 197, 16, 24, false, false}},
    {{3, 2, 7, 100, 32, 48, true, true}},
    {{1, 4, 2, 17, 3, 5, false, true}},
    {{1, 1, 40, 1024, 8, 256, true, false}, "attention in parts"},
    {{1, 2, 30, 2000, 4, 8, false, true}, "attention in parts"},
    {{2, 2, 33, 1537, 5, 70, true, false}, "attention in parts"},
    {{1, 1, 11, 6000, 8, 16, true, false}, "attention in parts"},
    {{2, 2, 21, 40, 16, 16, true, false, true, false}},
    {{1, 2, 33, 40, 16, 16, true, true, false, true}},
    {{1, 2, 30, 2000, 8, 40, true, true, false, false, AttentionCase::kReciprocal}, "attention in parts"},
    {{1, 2, 30, 50, 8, 40, true, true, false, false, AttentionCase::kHiddenIsZero}},
    {{2, 2, 17, 1700, 8, 40, true, true, false, false, AttentionCase::kHiddenIsZero}, "attention in parts"},
    {{2, 2, 33, 1, 16, 40, true, false, false, false, AttentionCase::kReciprocal, true},
     "attention in parts"},
    {{1, 2, 33, 70, 16, 40, true, true, true, true, AttentionCase::kReciprocal, true}, "attention in parts"},
    {{1, 1, 33, 1100, 16, 40, true, false, false, true, AttentionCase::kHiddenIsZero, true},
     "attention in parts"},
    {{2, 1, 19, 2500, 8, 40, true, false, true, true}, "attention in parts"},
    {{2, 2, 17, 0, 8, 40, true, false, false, false, AttentionCase::kDivision, true}, "attention in parts"},
    {{1, 2, 33, 0, 16, 40, true, true, false, true, AttentionCase::kReciprocal, true}, "attention in parts"},
};

class VulkanAttention : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (!has_device(&why)) GTEST_SKIP() << why;
    char path[] = "/tmp/quernel-attention-XXXXXX";
    int file = mkstemp(path);
    ASSERT_GE(file, 0);
    close(file);
    profile_ = path;
  }
  void TearDown() override { std::remove(profile_.c_str()); }

  // Under the validation layers, whose messages are a failure.
  void check_case(const VulkanCase& v, const char* profile, bool same_kernel) {
    const AttentionCase& c = v.graph;
    std::ofstream(profile_) << profile;
    std::string text = attention_text(c), messages;
    Expected<Graph> graph = parse_graph(text);
    ASSERT_TRUE(graph) << to_string(graph.errors()) << text;
    if (same_kernel) {
      EXPECT_EQ(kernels_of(*graph, vulkan_with(profile)), std::vector<std::string>{v.kernel}) << text;
    }
    std::map<std::string, int64_t> sizes;
    if (c.free_batch) sizes["B"] = c.batch;
    if (c.free_rows) sizes["N"] = c.rows;
    if (c.free_keys) sizes["M"] = c.keys;
    CompileOptions options;
    options.targets = {"vulkan"};
    if (!same_kernel) options.targets.emplace_back("vulkan+subgroups");  // taken where the device has them
    options.device_profile = profile_;
    qnl_vulkan_options vulkan = {};
    vulkan.validation = 2;
    vulkan.message_user = &messages;
    vulkan.message = [](void* user, const char* said) { *static_cast<std::string*>(user) += said; };
    Expected<CompiledGraph> compiled = CompiledGraph::make(*graph, options, 1, {}, &vulkan);
    ASSERT_TRUE(compiled) << to_string(compiled.errors());
    // Then a mask that hides all but the last keys of the first batch, one that hides all of them, and scores
    // that are no numbers.
    for (int masked : {0, 1, 2, 3}) {
      std::vector<Tensor> inputs = random_inputs_at(*graph, sizes, 3);
      if (masked != 0) {
        if (!c.mask) break;
        float value = masked == 3 ? NAN : -INFINITY;
        inputs[3] = with_first(inputs[3], masked == 1 ? c.keys - 3 : masked == 2 ? c.keys : 1, value);
      }
      Expected<std::vector<Tensor>> want = interpret(*graph, inputs, sizes), got = compiled->run(inputs);
      ASSERT_TRUE(want && got);
      for (size_t i = 0; i < want->size(); ++i)
        EXPECT_EQ(difference((*got)[i], (*want)[i], 1e-5, 1e-6), "")
            << profile << c.rows << "x" << c.keys << "x" << c.depth << ", mask " << masked;
    }
    EXPECT_EQ(messages, "") << "of the validation layers";
  }

  std::string profile_;
};

TEST_F(VulkanAttention, equals_the_interpreter) {
  for (const VulkanCase& c : kCases) check_case(c, kProfiles[0], true);
}

TEST_F(VulkanAttention, equals_the_interpreter_with_local_memory) {
  for (const VulkanCase& c : kCases) check_case(c, kProfiles[1], false);
}

// What a workgroup cannot hold is kernels by itself, and so is what too few workgroups would compute.
TEST(VulkanAttentionKernels, are_planned_by_cost) {
  auto kernels = [](const AttentionCase& c, const char* profile) {
    Expected<Graph> graph = parse_graph(attention_text(c));
    EXPECT_TRUE(graph);
    return kernels_of(*graph, vulkan_with(profile));
  };
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(kernels({1, 12, 2048, 2048, 64, 64, true, false}, ""), Kinds{"attention in parts"});
  EXPECT_EQ(kernels({1, 12, 128, 128, 64, 64, true, false}, ""), Kinds{"attention"});
  // More columns than registers of a block's sums: all keys at a time, or none.
  EXPECT_EQ(kernels({1, 1, 64, 300, 8, 2400, true, false}, kProfiles[0]), Kinds{"attention"});
  EXPECT_EQ(kernels({1, 1, 64, 6000, 8, 4000, true, false}, kProfiles[0]).back(), "contract");
  // One block of rows keeps a large device waiting.
  EXPECT_EQ(kernels({1, 1, 2, 1024, 64, 64, true, false}, "parallel_invocations 65536\n").back(), "contract");
}

}  // namespace
}  // namespace quernel::testing
