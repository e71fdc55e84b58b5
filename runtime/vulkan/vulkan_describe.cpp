// What only a Vulkan device has to say of itself: driver, limits, what it has done.
#include "core/describe.h"
#include "vulkan/vulkan_device.h"

namespace quernel::runtime::vulkan {
namespace {

void describe_version(Description& out, const char* name, uint32_t version) {
  char text[40];
  TextBuilder(text, sizeof text)
      .append("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
              VK_API_VERSION_PATCH(version));
  out.text(name, text);
}

void describe_matrices(Description& out, const char* name, const MatrixShape& shape) {
  if (shape.rows == 0) return;
  out.open_object(name);
  out.number("rows", shape.rows);
  out.number("columns", shape.columns);
  out.number("steps", shape.steps);
  out.close();
}

}  // namespace

void describe(const Device* device, Description* description) {
  const VulkanDevice* d = vulkan(device);
  const VkPhysicalDeviceLimits& limits = d->properties.limits;
  Description& out = *description;
  out.open_object("vulkan");
  out.text("type", type_name(d->properties.deviceType));
  describe_version(out, "api_version", d->properties.apiVersion);
  out.number("driver_version", d->properties.driverVersion);
  out.number("vendor_id", d->properties.vendorID);
  out.number("device_id", d->properties.deviceID);
  out.flag("unified_memory", d->unified);
  out.number("queue_family", d->queues[0].family);
  if (!d->unified) out.number("upload_queue_family", d->queues[d->queue_count - 1].family);
  out.flag("lost", d->faulted);
  out.number("import_alignment", d->import_alignment);
  out.number("timestamp_bits", d->timestamp_bits);
  out.number("timeout_nanoseconds", d->timeout);
  out.text("pipeline_cache", d->cache_path);
  out.close();
  out.open_object("limits");
  out.number("workgroup_invocations", limits.maxComputeWorkGroupInvocations);
  out.number("subgroup_invocations", d->subgroup_invocations);
  describe_matrices(out, "matrices_f16", d->matrix_shapes.f16);
  describe_matrices(out, "matrices_int8", d->matrix_shapes.int8);
  describe_matrices(out, "matrices_bf16", d->matrix_shapes.bf16);
  out.number("workgroup_memory_bytes", limits.maxComputeSharedMemorySize);
  out.number("workgroups", limits.maxComputeWorkGroupCount[0]);
  out.number("storage_buffer_bytes", limits.maxStorageBufferRange);
  out.number("storage_buffers", limits.maxPerStageDescriptorStorageBuffers);
  out.number("push_constant_bytes", limits.maxPushConstantsSize);
  out.number("allocation_bytes", d->max_allocation);
  out.number("allocations", limits.maxMemoryAllocationCount);
  out.close();
  out.open_object("counts");
  out.number("submissions", d->counts.submissions);
  out.number("transfers", d->counts.transfers);
  out.number("recordings", d->counts.recordings);
  out.number("descriptor_updates", d->counts.descriptor_updates);
  out.number("modules", d->counts.modules);
  out.number("pipelines", d->counts.pipelines);
  out.number("uploads", d->counts.uploads);
  out.number("allocations", d->counts.allocations);
  out.number("allocated_bytes", d->counts.allocated_bytes);
  out.close();
}

}  // namespace quernel::runtime::vulkan
