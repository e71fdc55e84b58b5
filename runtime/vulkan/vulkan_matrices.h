// VK_KHR_cooperative_matrix, which Vulkan's headers of early 2023 lack: the numbers are those of its specification.
#pragma once

#include "vulkan/vulkan_api.h"

namespace quernel::runtime::vulkan {

inline constexpr const char* kCooperativeMatrixExtension = "VK_KHR_cooperative_matrix";

// VkPhysicalDeviceCooperativeMatrixFeaturesKHR
struct MatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE, cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

// Matrices of f16 whose sums are f32: a is rows x steps, b is steps x columns. rows 0: the device has none that kernels
// can use (QNL_SPIRV_MATRIX_SHAPE).
struct MatrixShape {
  uint32_t rows = 0, columns = 0, steps = 0;
};

// Returns the largest shape that a workgroup of QNL_SPIRV_MATRIX_SIDE invocations can share out, in subgroups of that
// many.
MatrixShape find_matrix_shape(const Api& api, VkPhysicalDevice physical, uint32_t subgroup_invocations);

}  // namespace quernel::runtime::vulkan
