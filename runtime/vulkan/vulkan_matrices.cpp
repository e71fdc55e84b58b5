#include "vulkan/vulkan_matrices.h"

#include "schemas/kernel_abi.h"

namespace quernel::runtime::vulkan {
namespace {

// VkCooperativeMatrixPropertiesKHR; components and scopes are those of SPIR-V.
struct MatrixProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void* pNext = nullptr;
  uint32_t rows = 0, columns = 0, steps = 0;
  uint32_t a = 0, b = 0, c = 0, result = 0;
  VkBool32 saturates = VK_FALSE;
  uint32_t scope = 0;
};
constexpr uint32_t kF16 = 0, kF32 = 1, kSubgroup = 3;

using GetProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, MatrixProperties*);

// Whether each of `subgroups` gets whole columns of matrices of sums, or a part that divides one.
bool can_share(const MatrixProperties& p, uint32_t subgroups) {
  constexpr uint32_t kSide = QNL_SPIRV_MATRIX_SIDE;
  if (p.rows == 0 || p.columns == 0 || p.steps == 0 || kSide % p.rows != 0 || kSide % p.columns != 0 ||
      QNL_SPIRV_MATRIX_STEPS % p.steps != 0)
    return false;
  uint32_t down = kSide / p.rows, all = down * (kSide / p.columns), each = all / subgroups;
  return all % subgroups == 0 && (each % down == 0 || down % each == 0);
}

}  // namespace

MatrixShape find_matrix_shape(const Api& api, VkPhysicalDevice physical, uint32_t subgroup_invocations) {
  constexpr uint32_t kMost = 64;
  auto get = reinterpret_cast<GetProperties>(api.GetCooperativeMatrixProperties);
  MatrixShape best;
  if (get == nullptr || subgroup_invocations == 0 || QNL_SPIRV_MATRIX_SIDE % subgroup_invocations != 0)
    return best;
  MatrixProperties found[kMost];
  uint32_t count = kMost;
  VkResult result = get(physical, &count, found);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return best;
  for (uint32_t i = 0; i < count; ++i) {
    const MatrixProperties& p = found[i];
    if (p.a != kF16 || p.b != kF16 || p.c != kF32 || p.result != kF32 || p.scope != kSubgroup ||
        !can_share(p, QNL_SPIRV_MATRIX_SIDE / subgroup_invocations))
      continue;
    if (p.rows * p.columns * p.steps > best.rows * best.columns * best.steps)
      best = {p.rows, p.columns, p.steps};
  }
  return best;
}

}  // namespace quernel::runtime::vulkan
