// Code of the Vulkan device: the table of modules, of which those are made that a session's entry point needs.
#include <string.h>

#include <new>

#include "core/feature_names.h"
#include "platform/platform.h"
#include "vulkan/spirv_module.h"
#include "vulkan/vulkan_device.h"

namespace quernel::runtime::vulkan {

namespace {

constexpr uint32_t kMaxKernels = 1u << 20;

qnl_status check_table(const KernelCode& code, qnl_error* error) {
  if (code.arch != QNL_ARCH_SPIRV)
    return fail(error, QNL_MALFORMED_IMAGE, "kernels: expected code for spirv, found {}",
                arch_name(code.arch));
  qnl_spirv_table header;
  if (code.data == nullptr || reinterpret_cast<uintptr_t>(code.data) % 8 != 0 || code.bytes < sizeof header)
    return fail(error, QNL_MALFORMED_IMAGE, "kernels: expected a table of SPIR-V modules, found {} bytes",
                code.bytes);
  memcpy(&header, code.data, sizeof header);
  if (header.magic != QNL_SPIRV_MAGIC)
    return fail(error, QNL_MALFORMED_IMAGE,
                "kernels: expected a table of SPIR-V modules, found another magic");
  if (header.abi_version > QNL_SPIRV_ABI_VERSION || header.abi_version < QNL_SPIRV_ABI_VERSION - 1)
    return fail(error, QNL_KERNEL_ABI_MISMATCH,
                "kernels: expected SPIR-V ABI version {} or {}, found {}; compile the model again",
                QNL_SPIRV_ABI_VERSION - 1, QNL_SPIRV_ABI_VERSION, header.abi_version);
  if (header.reserved != 0)
    return fail(error, QNL_MALFORMED_IMAGE, "kernels: expected 0 in the table's reserved word, found {}",
                header.reserved);
  if (header.kernel_count != code.kernel_count || header.kernel_count > kMaxKernels ||
      header.kernel_count > (code.bytes - sizeof header) / sizeof(qnl_spirv_kernel))
    return fail(error, QNL_MALFORMED_IMAGE, "kernels: expected a table of {} modules, found {}",
                code.kernel_count, header.kernel_count);
  return QNL_OK;
}

qnl_status check_kernel(const VulkanDevice* d, const KernelCode& code, uint32_t index,
                        const qnl_spirv_kernel& k, uint64_t* splittable, qnl_error* error) {
  const VkPhysicalDeviceLimits& limits = d->properties.limits;
  auto refuse = [&](qnl_status status) {
    Failure failure(error, status);
    failure.append("kernel {}: ", index);
    return failure;
  };
  uint64_t table_bytes = sizeof(qnl_spirv_table) + uint64_t{code.kernel_count} * sizeof(qnl_spirv_kernel);
  if (k.code_offset % 4 != 0 || k.code_bytes % 4 != 0 || k.code_offset < table_bytes ||
      k.code_offset > code.bytes || k.code_bytes > code.bytes - k.code_offset)
    return refuse(QNL_MALFORMED_IMAGE).append("its module lies outside the code");
  if (k.binding_count > kMaxBindings)
    return refuse(QNL_MALFORMED_IMAGE)
        .append("expected at most {} bindings, found {}", kMaxBindings, uint32_t{k.binding_count});
  if (k.flags > QNL_SPIRV_COUNTS_ITERATIONS || (k.flags != 0 && k.symbol_count == 0))
    return refuse(QNL_MALFORMED_IMAGE)
        .append("expected flags that this runtime knows, found {}; update the runtime", uint32_t{k.flags});
  if (k.symbol_count > kMaxItemSymbols)
    return refuse(QNL_MALFORMED_IMAGE)
        .append("expected at most {} symbols, found {}", kMaxItemSymbols, k.symbol_count);
  if ((k.features & ~d->features) != 0) {
    Failure failure = refuse(QNL_NO_MATCHING_VARIANT);
    failure.append("needs features that device '{}' has not: ", d->properties.deviceName);
    failure.append_features(QNL_ARCH_SPIRV, k.features & ~d->features);
    return failure;
  }
  if (k.local_size == 0 || k.local_size > limits.maxComputeWorkGroupInvocations ||
      k.local_size > limits.maxComputeWorkGroupSize[0])
    return refuse(QNL_NO_MATCHING_VARIANT)
        .append(
            "has {} invocations in a workgroup, the device at most {}; compile for this device with --target",
            k.local_size, limits.maxComputeWorkGroupInvocations);
  if (k.shared_bytes > limits.maxComputeSharedMemorySize)
    return refuse(QNL_NO_MATCHING_VARIANT)
        .append("needs {} bytes of shared memory, the device has {}; compile for this device with --target",
                k.shared_bytes, limits.maxComputeSharedMemorySize);
  const auto* words = reinterpret_cast<const uint32_t*>(static_cast<const char*>(code.data) + k.code_offset);
  return verify_module(words, k.code_bytes / 4, k.local_size, k.features, "kernel", index, splittable, error);
}

void delete_set(VulkanDevice* d, VulkanKernelSet* set) {
  for (PipelineBlock* block = set->pipelines; block != nullptr;) {
    PipelineBlock* next = block->next;
    for (uint32_t i = 0; i < block->count; ++i)
      d->api.DestroyPipeline(d->device, block->entries[i].pipeline, nullptr);
    platform::free_pages(block, sizeof(PipelineBlock));
    block = next;
  }
  for (uint32_t i = 0; i < set->kernel_count; ++i)
    d->api.DestroyShaderModule(d->device, set->kernels[i].module, nullptr);
  d->memory_used -= set->block_bytes;
  platform::free_pages(set, set->block_bytes);
}

}  // namespace

qnl_status need_kernel(VulkanDevice* d, VulkanKernelSet* set, uint32_t index, qnl_error* error) {
  VulkanKernel& kernel = set->kernels[index];
  if (kernel.module != VK_NULL_HANDLE) return QNL_OK;
  const qnl_spirv_kernel& k = static_cast<const qnl_spirv_table*>(set->code)->kernels[index];
  KernelCode code = {set->code, set->code_bytes, QNL_ARCH_SPIRV, set->kernel_count};
  qnl_status status = check_kernel(d, code, index, k, &kernel.splittable, error);
  if (status != QNL_OK) return status;
  VkShaderModuleCreateInfo info = {VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO};
  info.codeSize = k.code_bytes;
  info.pCode = reinterpret_cast<const uint32_t*>(static_cast<const char*>(set->code) + k.code_offset);
  VkResult result = d->api.CreateShaderModule(d->device, &info, nullptr, &kernel.module);
  if (result != VK_SUCCESS) {
    kernel.module = VK_NULL_HANDLE;
    return fail(error, check(d, result), "kernel {}: the driver does not take its module, {}", index,
                result_name(result));
  }
  kernel.binding_count = k.binding_count;
  kernel.symbol_count = k.symbol_count;
  kernel.counts_iterations = k.flags != 0;
  kernel.matrices = d->matrix_shapes.of(k.features);
  d->counts.modules += 1;
  return QNL_OK;
}

qnl_status load_kernels(Device* device, const KernelCode& code, KernelSet** kernels, qnl_error* error) {
  VulkanDevice* d = vulkan(device);
  if (d->faulted) return fail(error, QNL_DEVICE_FAULT, "kernels: the device is lost");
  for (VulkanKernelSet* set = d->kernel_sets; set != nullptr; set = set->next) {
    if (set->code != code.data || set->code_bytes != code.bytes || set->kernel_count != code.kernel_count)
      continue;
    set->users += 1;
    *kernels = set;
    return QNL_OK;
  }
  if (qnl_status status = check_table(code, error); status != QNL_OK) return status;
  uint64_t bytes = sizeof(VulkanKernelSet) + uint64_t{code.kernel_count} * sizeof(VulkanKernel);
  void* memory = platform::allocate_pages(bytes);
  if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "kernels: no memory for their description");
  auto* set = new (memory) VulkanKernelSet;
  for (uint32_t i = 1; i < code.kernel_count; ++i) new (&set->kernels[i]) VulkanKernel;
  set->code = code.data;
  set->code_bytes = code.bytes;
  set->block_bytes = bytes;
  set->kernel_count = code.kernel_count;
  d->memory_used += bytes;
  set->users = 1;
  set->next = d->kernel_sets;
  d->kernel_sets = set;
  *kernels = set;
  return QNL_OK;
}

void unload_kernels(Device* device, KernelSet* kernels) {
  VulkanDevice* d = vulkan(device);
  auto* set = static_cast<VulkanKernelSet*>(kernels);
  if (set == nullptr || --set->users != 0) return;
  (void)!wait_idle(d);
  VulkanKernelSet** link = &d->kernel_sets;
  while (*link != set) link = &(*link)->next;
  *link = set->next;
  delete_set(d, set);
}

}  // namespace quernel::runtime::vulkan
