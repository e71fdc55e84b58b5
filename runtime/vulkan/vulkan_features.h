// Detects and enables the SPIR-V features of schemas/features.def on a Vulkan device.
#pragma once

#include "vulkan/vulkan_api.h"
#include "vulkan/vulkan_matrices.h"

namespace quernel::runtime::vulkan {

// The features of a device that kernels may need, as chained structures: first queried, then enabled.
struct Features {
  VkPhysicalDeviceFeatures2 base = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  VkPhysicalDevice16BitStorageFeatures storage16 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
  VkPhysicalDevice8BitStorageFeatures storage8 = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  VkPhysicalDeviceShaderFloat16Int8Features small = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
  VkPhysicalDeviceSubgroupProperties subgroup = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceShaderIntegerDotProductFeaturesKHR dot = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES_KHR};
  VkPhysicalDeviceFloatControlsPropertiesKHR floats = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES_KHR};
  MatrixFeatures matrices;
  Bfloat16Features bfloat16;
  MatrixShapes matrix_shapes;
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES};
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroup_sizes = {
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  const char* extensions[9] = {};
  uint32_t extension_count = 0;
  bool import = false;
  // These need not be enabled.
  VkBool32 vulkan_1_1 = VK_TRUE, subgroups = VK_FALSE, int8_matrices = VK_FALSE;
};

// Queries the device.
void query_features(const Api& api, VkPhysicalDevice physical, Features* f);
// Disables the features outside `mask` and those that no kernel needs. Returns the bits of the enabled ones.
uint64_t select_features(Features* f, uint64_t mask);

}  // namespace quernel::runtime::vulkan
