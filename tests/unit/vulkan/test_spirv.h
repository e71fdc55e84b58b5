// The kernels of test_kernels.c as SPIR-V, for bundles that a Vulkan device runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bundle/bundle_contents.h"

namespace quernel::test {

// The code segment with kernels kAdd to kSumUp of test_bundle.h, made from GLSL. kFail computes nothing:
// kernels of a Vulkan device cannot fail.
const std::vector<std::byte>& test_spirv();
// A table of one kernel from GLSL of this body, in which g is the linear workgroup, l the invocation and i
// g * 16 + l; `declarations` stand before it.
std::vector<std::byte> spirv_table(const std::string& body, uint32_t bindings, uint32_t symbols,
                                   uint64_t features = 0, uint32_t local_size = 16, uint32_t shared_bytes = 0,
                                   const std::string& declarations = "");

// Adds the variant "vulkan", with plans like those of variant 0.
bundle::BundleContents with_vulkan(bundle::BundleContents contents);

// Makes Mesa's software driver the only one, unless the environment names one already. Empty when there is a
// device to open, else why tests are skipped.
std::string why_no_vulkan();

}  // namespace quernel::test
