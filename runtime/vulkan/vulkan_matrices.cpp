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
// VkComponentTypeKHR
constexpr uint32_t kF16 = 0, kF32 = 1, kI8 = 3, kI32 = 5, kU8 = 7, kU32 = 9, kBF16 = 1000141000;
constexpr uint32_t kSubgroup = 3;

using GetProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, MatrixProperties*);

struct Dtypes {
  uint32_t operands, sums, operand_bytes;
};

// Whether each of `subgroups` gets whole columns of matrices of sums, or a part that divides one.
bool can_share(const MatrixProperties& p, uint32_t steps, uint32_t subgroups) {
  constexpr uint32_t kSide = QNL_SPIRV_MATRIX_SIDE;
  if (p.rows == 0 || p.columns == 0 || p.steps == 0 || kSide % p.rows != 0 || kSide % p.columns != 0 ||
      steps % p.steps != 0)
    return false;
  uint32_t down = kSide / p.rows, all = down * (kSide / p.columns), each = all / subgroups;
  return all % subgroups == 0 && (each % down == 0 || down % each == 0);
}

bool has_dtypes(const MatrixProperties& p, const Dtypes& d) {
  return p.a == d.operands && p.b == d.operands && p.c == d.sums && p.result == d.sums &&
         p.saturates == VK_FALSE && p.scope == kSubgroup;
}

class Found {
 public:
  Found(const MatrixProperties* all, uint32_t count, uint32_t subgroups)
      : all_(all), count_(count), subgroups_(subgroups) {}

  // The largest shape that both have.
  MatrixShape best(const Dtypes& d, const Dtypes& other) const {
    MatrixShape best;
    for (uint32_t i = 0; i < count_; ++i) {
      const MatrixProperties& p = all_[i];
      if (!has_dtypes(p, d) || !has(p, other) ||
          !can_share(p, QNL_SPIRV_MATRIX_STEP_BYTES / d.operand_bytes, subgroups_))
        continue;
      if (p.rows * p.columns * p.steps > best.rows * best.columns * best.steps)
        best = {p.rows, p.columns, p.steps};
    }
    return best;
  }

 private:
  bool has(const MatrixProperties& shape, const Dtypes& d) const {
    for (uint32_t i = 0; i < count_; ++i) {
      const MatrixProperties& p = all_[i];
      if (has_dtypes(p, d) && p.rows == shape.rows && p.columns == shape.columns && p.steps == shape.steps)
        return true;
    }
    return false;
  }

  const MatrixProperties* all_;
  uint32_t count_, subgroups_;
};

}  // namespace

MatrixShape MatrixShapes::of(uint64_t features) const {
  if ((features & QNL_SPIRV_COOPMAT_INT8) != 0) return int8;
  if ((features & QNL_SPIRV_COOPMAT_BF16) != 0) return bf16;
  return (features & QNL_SPIRV_COOPMAT) != 0 ? f16 : MatrixShape{};
}

MatrixShapes find_matrix_shapes(const Api& api, VkPhysicalDevice physical, uint32_t subgroup_invocations) {
  constexpr uint32_t kMost = 128;
  auto get = reinterpret_cast<GetProperties>(api.GetCooperativeMatrixProperties);
  if (get == nullptr || subgroup_invocations == 0 || QNL_SPIRV_MATRIX_SIDE % subgroup_invocations != 0)
    return {};
  MatrixProperties properties[kMost];
  uint32_t count = kMost;
  VkResult result = get(physical, &count, properties);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return {};
  const Found found(properties, count, QNL_SPIRV_MATRIX_SIDE / subgroup_invocations);
  const Dtypes f16 = {kF16, kF32, 2}, bf16 = {kBF16, kF32, 2}, i8 = {kI8, kI32, 1}, u8 = {kU8, kU32, 1};
  return {found.best(f16, f16), found.best(i8, u8), found.best(bf16, bf16)};
}

}  // namespace quernel::runtime::vulkan
