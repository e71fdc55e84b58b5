#include "vulkan/vulkan_features.h"

#include <string.h>

#include "platform/platform.h"

namespace quernel::runtime::vulkan {
namespace {

// Where a device says that it has a feature, and where it is enabled: one for each of SPIR-V's features in
// schemas/features.def. A feature without one does not compile.
template <uint64_t feature>
VkBool32* flag_of(Features* f) = delete;
template <>
VkBool32* flag_of<QNL_SPIRV_VULKAN_1_1>(Features* f) {
  return &f->vulkan_1_1;
}
template <>
VkBool32* flag_of<QNL_SPIRV_INT16>(Features* f) {
  return &f->base.features.shaderInt16;
}
template <>
VkBool32* flag_of<QNL_SPIRV_INT64>(Features* f) {
  return &f->base.features.shaderInt64;
}
template <>
VkBool32* flag_of<QNL_SPIRV_FLOAT64>(Features* f) {
  return &f->base.features.shaderFloat64;
}
template <>
VkBool32* flag_of<QNL_SPIRV_STORAGE_16>(Features* f) {
  return &f->storage16.storageBuffer16BitAccess;
}
template <>
VkBool32* flag_of<QNL_SPIRV_STORAGE_8>(Features* f) {
  return &f->storage8.storageBuffer8BitAccess;
}
template <>
VkBool32* flag_of<QNL_SPIRV_INT8>(Features* f) {
  return &f->small.shaderInt8;
}
template <>
VkBool32* flag_of<QNL_SPIRV_SUBGROUPS>(Features* f) {
  return &f->subgroups;
}
template <>
VkBool32* flag_of<QNL_SPIRV_DOTPROD>(Features* f) {
  return &f->dot.shaderIntegerDotProduct;
}
template <>
VkBool32* flag_of<QNL_SPIRV_FLOAT16>(Features* f) {
  return &f->small.shaderFloat16;
}
template <>
VkBool32* flag_of<QNL_SPIRV_COOPMAT>(Features* f) {
  return &f->matrices.cooperativeMatrix;
}
template <>
VkBool32* flag_of<QNL_SPIRV_COOPMAT_INT8>(Features* f) {
  return &f->int8_matrices;
}
template <>
VkBool32* flag_of<QNL_SPIRV_COOPMAT_BF16>(Features* f) {
  return &f->bfloat16.shaderBFloat16CooperativeMatrix;
}

constexpr uint32_t kMaxExtensions = 512;

// Which of the extensions that this device can use it has.
void find_extensions(const Api& api, VkPhysicalDevice physical, Features* f) {
  uint64_t bytes = kMaxExtensions * sizeof(VkExtensionProperties);
  auto* found = static_cast<VkExtensionProperties*>(platform::allocate_pages(bytes));
  if (found == nullptr) return;
  uint32_t count = kMaxExtensions;
  VkResult result = api.EnumerateDeviceExtensionProperties(physical, nullptr, &count, found);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) count = 0;
  constexpr const char* kWanted[] = {VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
                                     VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                                     VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
                                     VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
                                     VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME,
                                     kCooperativeMatrixExtension,
                                     VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
                                     VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
                                     kBfloat16Extension};
  for (const char* wanted : kWanted)
    for (uint32_t i = 0; i < count; ++i)
      if (strcmp(found[i].extensionName, wanted) == 0) {
        f->extensions[f->extension_count++] = wanted;
        f->import = f->import || wanted == kWanted[2];
        break;
      }
  platform::free_pages(found, bytes);
}

bool has_extension(const Features& f, const char* name) {
  for (uint32_t i = 0; i < f.extension_count; ++i)
    if (strcmp(f.extensions[i], name) == 0) return true;
  return false;
}

bool has_subgroups(const VkPhysicalDeviceSubgroupProperties& p) {
  constexpr VkSubgroupFeatureFlags kNeeded =
      VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  return (p.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
         (p.supportedOperations & kNeeded) == kNeeded;
}

// Conversions of halves are rounded to the nearest on every device, and keep infinities and NaNs. That a
// module which says so speaks of all widths, features.def explains.
bool rounds_halves(const VkPhysicalDeviceFloatControlsPropertiesKHR& p, bool has_f64) {
  return p.shaderSignedZeroInfNanPreserveFloat16 != VK_FALSE && p.shaderRoundingModeRTEFloat16 != VK_FALSE &&
         p.shaderRoundingModeRTEFloat32 != VK_FALSE &&
         (!has_f64 || p.shaderRoundingModeRTEFloat64 != VK_FALSE);
}

// `on` gets the flags of `found` that are among `mask`, and the others off; their bits are the result. A
// template, so that the features of other architectures are not looked up.
template <class F>
uint64_t enable_features(F* on, F* found, uint64_t mask) {
  uint64_t bits = 0;
  auto take = [&](uint64_t bit, VkBool32* has, VkBool32* enable) {
    *enable = *has != VK_FALSE && (mask & bit) != 0 ? VK_TRUE : VK_FALSE;
    if (*enable != VK_FALSE) bits |= bit;
  };
#define QNL_FEATURE(arch, constant, bit, name, option, llvm, needs, sentence) \
  if constexpr (QNL_ARCH_##arch == QNL_ARCH_SPIRV)                            \
    take(constant, flag_of<constant>(found), flag_of<constant>(on));
#include "schemas/features.def"
  return bits;
}

}  // namespace

void query_features(const Api& api, VkPhysicalDevice physical, Features* f) {
  find_extensions(api, physical, f);
  VkPhysicalDeviceProperties2 properties = {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &f->subgroup};
  if (has_extension(*f, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME)) f->subgroup.pNext = &f->floats;
  api.GetPhysicalDeviceProperties2(physical, &properties);
  f->base.pNext = &f->storage16;
  void** end = &f->storage16.pNext;
  if (has_extension(*f, VK_KHR_8BIT_STORAGE_EXTENSION_NAME)) {
    *end = &f->storage8;
    end = &f->storage8.pNext;
  }
  if (has_extension(*f, VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME)) {
    *end = &f->small;
    end = &f->small.pNext;
  }
  if (has_extension(*f, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME)) {
    *end = &f->dot;
    end = &f->dot.pNext;
  }
  // What modules with matrices need.
  if (has_extension(*f, kCooperativeMatrixExtension) &&
      has_extension(*f, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME) &&
      has_extension(*f, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) {
    *end = &f->matrices;
    f->matrices.pNext = &f->memory_model;
    f->memory_model.pNext = &f->subgroup_sizes;
    if (has_extension(*f, kBfloat16Extension)) f->subgroup_sizes.pNext = &f->bfloat16;
    f->matrix_shapes = find_matrix_shapes(api, physical, f->subgroup.subgroupSize);
  }
  api.GetPhysicalDeviceFeatures2(physical, &f->base);
}

uint64_t select_features(Features* f, uint64_t mask) {
  Features found = *f;
  if (!rounds_halves(f->floats, f->base.features.shaderFloat64 != VK_FALSE))
    found.small.shaderFloat16 = VK_FALSE;
  if (f->matrix_shapes.f16.rows == 0 || found.memory_model.vulkanMemoryModel == VK_FALSE ||
      found.subgroup_sizes.computeFullSubgroups == VK_FALSE)
    found.matrices.cooperativeMatrix = VK_FALSE;
  found.int8_matrices = f->matrix_shapes.int8.rows != 0 ? found.matrices.cooperativeMatrix : VK_FALSE;
  if (f->matrix_shapes.bf16.rows == 0 || found.bfloat16.shaderBFloat16Type == VK_FALSE)
    found.bfloat16.shaderBFloat16CooperativeMatrix = VK_FALSE;
  found.subgroups = has_subgroups(f->subgroup) ? VK_TRUE : VK_FALSE;
  f->base.features = {};
  // An index that is wrong must not reach memory of others.
  f->base.features.robustBufferAccess = found.base.features.robustBufferAccess;
  f->storage16.uniformAndStorageBuffer16BitAccess = f->storage16.storagePushConstant16 =
      f->storage16.storageInputOutput16 = VK_FALSE;
  f->storage8.uniformAndStorageBuffer8BitAccess = f->storage8.storagePushConstant8 = VK_FALSE;
  if ((mask & QNL_SPIRV_COOPMAT) == 0) mask &= ~(QNL_SPIRV_COOPMAT_INT8 | QNL_SPIRV_COOPMAT_BF16);
  const uint64_t bits = enable_features(f, &found, mask | QNL_SPIRV_VULKAN_1_1);
  const VkBool32 matrices = f->matrices.cooperativeMatrix;
  f->memory_model.vulkanMemoryModel = f->subgroup_sizes.computeFullSubgroups = matrices;
  f->memory_model.vulkanMemoryModelDeviceScope =
      f->memory_model.vulkanMemoryModelAvailabilityVisibilityChains = VK_FALSE;
  f->subgroup_sizes.subgroupSizeControl = VK_FALSE;
  f->bfloat16.shaderBFloat16Type = f->bfloat16.shaderBFloat16CooperativeMatrix;
  f->bfloat16.shaderBFloat16DotProduct = VK_FALSE;
  if (matrices == VK_FALSE) f->matrices.cooperativeMatrixRobustBufferAccess = VK_FALSE;
  return bits;
}

}  // namespace quernel::runtime::vulkan
