// Vulkan devices: compute shaders in SPIR-V. What a module needs beyond Vulkan 1.1 depends on the model's
// dtypes (64-bit integers, doubles, 8- and 16-bit elements in memory) and becomes the variant's required
// features.
#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> vulkan_targets() {
  Target vulkan;
  vulkan.name = "vulkan";
  vulkan.description = "Vulkan 1.1 devices with the least memory for workgroups that the standard asks for";
  vulkan.arch = QNL_ARCH_SPIRV;
  vulkan.required_features = QNL_SPIRV_VULKAN_1_1;
  vulkan.vector_bytes = 256;  // 64 invocations of 32 bits: a whole number of subgroups on all GPUs known
  vulkan.vector_registers = 48;
  vulkan.has_fma = true;
  vulkan.has_masks = true;
  vulkan.has_gather = true;
  vulkan.l1_bytes = vulkan.workgroup_memory = 16 << 10;
  vulkan.l2_bytes = 1 << 20;
  return {vulkan};
}

}  // namespace quernel
