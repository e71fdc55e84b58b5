// Sums of very many f32 terms on the machine's Vulkan device: within the bound of compiler/lower/README.md.
#include "long_sums.h"
#include "on_vulkan.h"
#include "schemas/kernel_abi.h"

namespace quernel::testing {
namespace {

class VulkanLongSums : public ::testing::TestWithParam<const char*> {};

TEST_P(VulkanLongSums, are_within_the_bound) {
  std::string why;
  if (!has_device(&why)) GTEST_SKIP() << why;
  CompileOptions options;
  options.targets = {GetParam()};
  if (options.targets[0] != "vulkan" && !has_features(QNL_SPIRV_SUBGROUPS))
    GTEST_SKIP() << "the device has no subgroup operations";
  static const AllSums sums(Terms::kTenths);
  qnl_vulkan_options vulkan = {};
  Expected<CompiledGraph> compiled = CompiledGraph::make(sums.all, options, 1, {}, &vulkan);
  ASSERT_TRUE(compiled) << to_string(compiled.errors());
  Expected<std::vector<Tensor>> got = compiled->run(sums.inputs);
  ASSERT_TRUE(got) << to_string(got.errors());
  sums.expect(*got);
}

INSTANTIATE_TEST_SUITE_P(Targets, VulkanLongSums, ::testing::Values("vulkan", "vulkan+subgroups"),
                         [](const auto& info) {
                           return std::string(info.param).find('+') == std::string::npos ? "least"
                                                                                         : "subgroups";
                         });

}  // namespace
}  // namespace quernel::testing
