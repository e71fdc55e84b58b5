// Pipelines of the kernels that are needed, those of a session made on several threads, and the file that keeps them.
#include <string.h>

#include <new>

#include "core/trace.h"
#include "platform/file.h"
#include "platform/library.h"
#include "platform/platform.h"
#include "schemas/bundle_hash.h"
#include "vulkan/vulkan_device.h"
#include "vulkan/vulkan_windows.h"

namespace quernel::runtime::vulkan {

namespace {

// Makes an entry's pipeline. Several threads may at once, of distinct entries: drivers synchronise the cache.
void compile(const VulkanDevice* d, const VulkanKernel& kernel, PipelineBlock::Entry* entry) {
  constexpr uint32_t kMostConstants = 2 * kMaxBindings + 4;
  VkSpecializationMapEntry entries[kMostConstants];
  uint32_t values[kMostConstants], count = 0;
  auto set = [&](uint32_t id, uint32_t value) {
    entries[count] = {id, count * 4, 4};
    values[count++] = value;
  };
  uint64_t piece = split_bytes(d->properties.limits.maxStorageBufferRange);
  for (uint32_t b = 0; b < kernel.binding_count; ++b) {
    set(b, entry->map.get(b));
    if ((entry->map.split >> b & 1) != 0) set(QNL_SPIRV_SPLIT + b, static_cast<uint32_t>(piece));
  }
  const MatrixShape& shape = kernel.matrices;
  if (shape.rows != 0) {
    const uint32_t constants[] = {shape.rows, shape.columns, shape.steps,
                                  QNL_SPIRV_MATRIX_SIDE / d->subgroup_invocations};
    for (uint32_t i = 0; i < 4; ++i) set(QNL_SPIRV_MATRIX_SHAPE + i, constants[i]);
  }
  VkSpecializationInfo specialization = {count, entries, count * 4, values};
  VkComputePipelineCreateInfo info = {VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO};
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = kernel.module;
  if (shape.rows != 0) info.stage.flags = VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT;
  info.stage.pName = "main";
  info.stage.pSpecializationInfo = &specialization;
  info.layout = d->pipeline_layouts[kernel.uses_push() ? 0 : 1];
  entry->begin = platform::now_nanoseconds();
  entry->result = d->api.CreateComputePipelines(d->device, d->cache, 1, &info, nullptr, &entry->pipeline);
  entry->end = platform::now_nanoseconds();
  if (entry->result != VK_SUCCESS) entry->pipeline = VK_NULL_HANDLE;
}

// The listed pipelines of a set; each thread takes the next one.
struct Work {
  const VulkanDevice* d;
  const VulkanKernelSet* set;
  uint32_t taken = 0;
};

void take_pipelines(void* argument) {
  auto* work = static_cast<Work*>(argument);
  uint32_t next = __atomic_fetch_add(&work->taken, 1u, __ATOMIC_RELAXED), passed = 0;
  for (PipelineBlock* block = work->set->pipelines; block != nullptr; block = block->next) {
    for (; next < passed + block->count; next = __atomic_fetch_add(&work->taken, 1u, __ATOMIC_RELAXED)) {
      PipelineBlock::Entry* entry = &block->entries[next - passed];
      if (entry->pipeline == VK_NULL_HANDLE) compile(work->d, work->set->kernels[entry->kernel], entry);
    }
    passed += block->count;
  }
}

PipelineBlock::Entry* find_entry(VulkanKernelSet* set, uint32_t kernel, const WindowMap& map) {
  for (PipelineBlock* block = set->pipelines; block != nullptr; block = block->next)
    for (uint32_t i = 0; i < block->count; ++i)
      if (block->entries[i].kernel == kernel && block->entries[i].map == map) return &block->entries[i];
  return nullptr;
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

qnl_status want_pipeline(VulkanKernelSet* set, uint32_t kernel, const WindowMap& map, qnl_error* error) {
  if (find_entry(set, kernel, map) != nullptr) return QNL_OK;
  PipelineBlock* block = set->pipelines;
  if (block == nullptr || block->count == PipelineBlock::kEntries) {
    void* memory = platform::allocate_pages(sizeof(PipelineBlock));
    if (memory == nullptr) return fail(error, QNL_OUT_OF_MEMORY, "pipelines: no memory for their list");
    block = new (memory) PipelineBlock;
    block->next = set->pipelines;
    set->pipelines = block;
  }
  block->entries[block->count++] = {kernel, map};
  return QNL_OK;
}

qnl_status make_pipelines(VulkanDevice* d, VulkanKernelSet* set, qnl_error* error) {
  constexpr uint32_t kMostThreads = 16;
  uint32_t wanted = 0;
  for (PipelineBlock* block = set->pipelines; block != nullptr; block = block->next)
    for (uint32_t i = 0; i < block->count; ++i) wanted += block->entries[i].pipeline == VK_NULL_HANDLE;
  if (wanted == 0) return QNL_OK;
  uint32_t threads = platform::processor_count(), started = 0;
  if (threads > wanted) threads = wanted;
  if (threads > kMostThreads) threads = kMostThreads;
  Work work = {d, set};
  platform::Thread workers[kMostThreads];
  while (started + 1 < threads && platform::start_thread(&workers[started], take_pipelines, &work)) ++started;
  qnl_status status = upload_constants(d);  // meanwhile
  take_pipelines(&work);
  for (uint32_t t = 0; t < started; ++t) platform::join_thread(workers[t]);
  d->cache_is_stale = true;
  if (status != QNL_OK) (void)fail(error, status, "constants: the device cannot use them");
  for (PipelineBlock* block = set->pipelines; block != nullptr; block = block->next)
    for (uint32_t i = 0; i < block->count; ++i) {
      PipelineBlock::Entry& entry = block->entries[i];
      if (entry.end == 0) continue;  // made before
      report(d, QNL_TRACE_PIPELINE, nullptr, false, entry.begin, entry.end, 0);
      entry.begin = entry.end = 0;
      d->counts.pipelines += 1;
      if (qnl_status failed = check(d, entry.result); failed != QNL_OK) {
        status = fail(error, failed, "kernel {}: the driver cannot compile it", entry.kernel);
        entry = block->entries[--block->count];  // sessions that do not need it are not to fail
        --i;
      }
    }
  return status;
}

qnl_status find_pipeline(VulkanDevice* d, VulkanKernelSet* set, uint32_t kernel, const WindowMap& map,
                         VkPipeline* pipeline, qnl_error* error) {
  qnl_status status = want_pipeline(set, kernel, map, error);
  if (status != QNL_OK) return status;
  const PipelineBlock::Entry* entry = find_entry(set, kernel, map);
  if (entry->pipeline == VK_NULL_HANDLE) status = make_pipelines(d, set, error);
  if (status == QNL_OK) *pipeline = entry->pipeline;
  return status;
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
