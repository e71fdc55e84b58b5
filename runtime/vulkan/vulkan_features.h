// Which of SPIR-V's features in schemas/features.def a Vulkan device has, and how they are enabled.
#pragma once

#include "vulkan/vulkan_api.h"

namespace quernel::runtime::vulkan {

// What a device offers of what kernels may need, as chained structures: to be asked for, then to be enabled.
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
  const char* extensions[5] = {};
  uint32_t extension_count = 0;
  bool import = false;
  // Nothing of them has to be enabled.
  VkBool32 vulkan_1_1 = VK_TRUE, subgroups = VK_FALSE;
};

// Asks a device.
void query_features(const Api& api, VkPhysicalDevice physical, Features* f);
// Turns off what is not among `mask`, and what kernels do not need; the bits of what is left.
uint64_t select_features(Features* f, uint64_t mask);

}  // namespace quernel::runtime::vulkan
