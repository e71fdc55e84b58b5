// Code of the Vulkan device: the table of modules, of which those are made that a session's entry point
// needs, pipelines made from them, and the file that keeps those.
#include <string.h>

#include <new>

#include "core/feature_names.h"
#include "core/trace.h"
#include "platform/file.h"
#include "platform/library.h"
#include "platform/platform.h"
#include "schemas/bundle_hash.h"
#include "vulkan/spirv_module.h"
#include "vulkan/vulkan_device.h"
#include "vulkan/vulkan_windows.h"

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
  if (header.abi_version != QNL_SPIRV_ABI_VERSION)
    return fail(error, QNL_KERNEL_ABI_MISMATCH,
                "kernels: expected SPIR-V ABI version {}, found {}; compile the model again",
                QNL_SPIRV_ABI_VERSION, header.abi_version);
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

qnl_status create_pipeline(VulkanDevice* d, const VulkanKernel& kernel, const WindowMap& map,
                           VkPipeline* pipeline) {
  VkSpecializationMapEntry entries[2 * kMaxBindings];
  uint32_t values[2 * kMaxBindings], count = 0;
  auto set = [&](uint32_t id, uint32_t value) {
    entries[count] = {id, count * 4, 4};
    values[count++] = value;
  };
  uint64_t piece = split_bytes(d->properties.limits.maxStorageBufferRange);
  for (uint32_t b = 0; b < kernel.binding_count; ++b) {
    set(b, map.get(b));
    if ((map.split >> b & 1) != 0) set(QNL_SPIRV_SPLIT + b, static_cast<uint32_t>(piece));
  }
  VkSpecializationInfo specialization = {count, entries, count * 4, values};
  VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = kernel.module;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  info.layout = d->pipeline_layouts[kernel.uses_push() ? 0 : 1];
  TraceScope scope(d, QNL_TRACE_PIPELINE, nullptr);
  d->counts.pipelines += 1;
  d->cache_is_stale = true;
  return check(d, d->api.CreateComputePipelines(d->device, d->cache, 1, &info, nullptr, pipeline));
}

// ---- the cache's file: this, then the driver's data, whose own header names device and driver

struct CacheHeader {
  uint32_t magic;  // 'Q' 'N' 'L' 'C'
  uint32_t version;
  uint64_t bytes;
  uint64_t hash;  // of the data
};
constexpr uint32_t kCacheMagic = 0x434C4E51, kCacheVersion = 1;
constexpr uint64_t kMaxCacheBytes = uint64_t{1} << 30;

// The driver's data in the file; null where it is not of this device, or damaged.
const void* cache_data(const VulkanDevice* d, const platform::MappedFile& file, uint64_t* bytes) {
  CacheHeader header;
  if (file.bytes < sizeof header + sizeof(VkPipelineCacheHeaderVersionOne)) return nullptr;
  memcpy(&header, file.data, sizeof header);
  const char* data = static_cast<const char*>(file.data) + sizeof header;
  if (header.magic != kCacheMagic || header.version != kCacheVersion ||
      header.bytes != file.bytes - sizeof header || header.hash != qnl_hash(data, header.bytes))
    return nullptr;
  VkPipelineCacheHeaderVersionOne driver;
  memcpy(&driver, data, sizeof driver);
  const VkPhysicalDeviceProperties& p = d->properties;
  if (driver.headerVersion != VK_PIPELINE_CACHE_HEADER_VERSION_ONE || driver.headerSize < sizeof driver ||
      driver.vendorID != p.vendorID || driver.deviceID != p.deviceID ||
      memcmp(driver.pipelineCacheUUID, p.pipelineCacheUUID, VK_UUID_SIZE) != 0)
    return nullptr;
  *bytes = header.bytes;
  return data;
}

void store_cache(VulkanDevice* d) {
  size_t bytes = 0;
  if (d->api.GetPipelineCacheData(d->device, d->cache, &bytes, nullptr) != VK_SUCCESS || bytes == 0 ||
      bytes > kMaxCacheBytes)
    return;
  void* data = platform::allocate_pages(bytes);
  if (data == nullptr) return;
  size_t written = bytes;
  if (d->api.GetPipelineCacheData(d->device, d->cache, &written, data) == VK_SUCCESS) {
    CacheHeader header = {kCacheMagic, kCacheVersion, written, qnl_hash(data, written)};
    platform::Piece pieces[] = {{&header, sizeof header}, {data, written}};
    (void)!platform::replace_file(d->cache_path, pieces, 2);  // the next process compiles again
  }
  platform::free_pages(data, bytes);
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

qnl_status find_pipeline(VulkanDevice* d, VulkanKernelSet* set, uint32_t kernel, const WindowMap& map,
                         VkPipeline* pipeline, qnl_error* error) {
  for (PipelineBlock* block = set->pipelines; block != nullptr; block = block->next)
    for (uint32_t i = 0; i < block->count; ++i)
      if (block->entries[i].kernel == kernel && block->entries[i].map == map) {
        *pipeline = block->entries[i].pipeline;
        return QNL_OK;
      }
  PipelineBlock* block = set->pipelines;
  if (block == nullptr || block->count == PipelineBlock::kEntries) {
    void* memory = platform::allocate_pages(sizeof(PipelineBlock));
    if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "pipelines: no memory for their list");
    block = new (memory) PipelineBlock;
    block->next = set->pipelines;
    set->pipelines = block;
  }
  *pipeline = VK_NULL_HANDLE;
  qnl_status status = create_pipeline(d, set->kernels[kernel], map, pipeline);
  if (status != QNL_OK) return fail(error, status, "kernel {}: the driver cannot compile it", kernel);
  block->entries[block->count++] = {kernel, map, *pipeline};
  return QNL_OK;
}

qnl_status open_pipeline_cache(VulkanDevice* d) {
  platform::MappedFile file;
  const char* reason = "";
  VkPipelineCacheCreateInfo info = {VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  bool mapped = d->cache_path[0] != '\0' &&
                platform::map_file(d->cache_path, &file, &reason) == platform::MapResult::kOk;
  if (mapped) {
    uint64_t bytes = 0;
    info.pInitialData = cache_data(d, file, &bytes);
    info.initialDataSize = d->counts.cache_bytes = bytes;
  }
  VkResult result = d->api.CreatePipelineCache(d->device, &info, nullptr, &d->cache);
  if (mapped) platform::unmap_file(file);
  return check(d, result);
}

void close_pipeline_cache(VulkanDevice* d) {
  if (d->cache_path[0] != '\0' && d->cache != VK_NULL_HANDLE && !d->faulted && d->cache_is_stale)
    store_cache(d);
  d->api.DestroyPipelineCache(d->device, d->cache, nullptr);
}

}  // namespace quernel::runtime::vulkan
