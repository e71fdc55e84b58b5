// VK_KHR_cooperative_matrix and VK_KHR_shader_bfloat16, which Vulkan's headers of early 2023 lack: the numbers are those of
// their specifications.
#pragma once

#include "vulkan/vulkan_api.h"

namespace quernel::runtime::vulkan {

inline constexpr const char* kCooperativeMatrixExtension = "VK_KHR_cooperative_matrix";
inline constexpr const char* kBfloat16Extension = "VK_KHR_shader_bfloat16";

// VkPhysicalDeviceCooperativeMatrixFeaturesKHR
struct MatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE, cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

// VkPhysicalDeviceShaderBfloat16FeaturesKHR
struct Bfloat16Features {
  VkStructureType sType = static_cast<VkStructureType>(1000141000);
  void* pNext = nullptr;
  VkBool32 shaderBFloat16Type = VK_FALSE, shaderBFloat16DotProduct = VK_FALSE,
           shaderBFloat16CooperativeMatrix = VK_FALSE;
};

// Matrices a, of rows x steps, and b, of steps x columns, and their sums. rows 0: the device has none that kernels can use
// (QNL_SPIRV_MATRIX_SHAPE).
struct MatrixShape {
  uint32_t rows = 0, columns = 0, steps = 0;
};

// By the dtype of a and b: f16 and bf16 with sums of f32, i8 with sums of i32. u8 has the shape of i8.
struct MatrixShapes {
  MatrixShape f16, int8, bf16;
  // The shape of the matrices of a module with these features, QNL_SPIRV_*; none if it has no matrices.
  MatrixShape of(uint64_t features) const;
};

// Returns the largest shapes that a workgroup of QNL_SPIRV_MATRIX_SIDE invocations can share out, in subgroups of that
// many.
MatrixShapes find_matrix_shapes(const Api& api, VkPhysicalDevice physical, uint32_t subgroup_invocations);

}  // namespace quernel::runtime::vulkan
