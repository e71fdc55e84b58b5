#include "schedule/storage.h"

#include <algorithm>
#include <map>

#include "graph/control.h"
#include "schedule/custom_call.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kAlignment = 64, kSlotAlignment = 64;  // bytes

}  // namespace

Dim aligned(const Dim& bytes) { return ceildiv(bytes, kAlignment) * kAlignment; }

Dim byte_size(DType dtype, const Dim& count) {
  if (count.is_const()) return quernel::byte_size(dtype, count.value());
  int bits = bit_width(dtype);
  return bits >= 8 ? count * (bits / 8) : ceildiv(count * bits, 8);
}

Dim span(const Shape& dims, const Shape& strides) {
  Dim last = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == Dim(0)) return 0;
    last = last + (dims[d] - 1) * strides[d];
  }
  return last + 1;
}

Dim slot_elements(const TensorType& type) {
  Dim bytes = byte_size(type.dtype, element_count(type.shape)).upper_bound();
  return ceildiv(bytes, kSlotAlignment) * (kSlotAlignment * 8 / bit_width(type.dtype));
}

bool is_carried(const Graph& graph, const Node& node) {
  if (node.op != OpKind::k_result || is_custom_result(graph, node)) return false;
  return node.attributes.ints[0] < graph.def(node.inputs[0])->attributes.control->carried;
}

int root_buffer(const Schedule& s, int buffer) {
  while (s.buffers[buffer].shares >= 0) buffer = s.buffers[buffer].shares;
  return buffer;
}

bool same_place(const Schedule& s, ValueId a, ValueId b) {
  const Storage &x = s.storage[a], &y = s.storage[b];
  return x.valid() && y.valid() && root_buffer(s, x.buffer) == root_buffer(s, y.buffer) &&
         x.offset == y.offset && x.strides == y.strides;
}

std::vector<int64_t> live_bytes(const Schedule& schedule) {
  std::map<int, std::pair<int, int>> ranges;  // of blocks, by root buffer
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    const Buffer& buffer = schedule.buffers[b];
    if (buffer.kind != BufferKind::kWorkspace || buffer.first_item < 0) continue;
    auto [it, fresh] =
        ranges.try_emplace(root_buffer(schedule, static_cast<int>(b)), buffer.first_item, buffer.last_item);
    it->second.first = std::min(it->second.first, buffer.first_item);
    it->second.second = std::max(it->second.second, buffer.last_item);
  }
  std::vector<int64_t> live(schedule.items.size(), 0);
  for (const auto& [root, range] : ranges)
    for (int i = range.first; i <= range.second; ++i)
      live[i] += aligned(schedule.buffers[root].bytes).estimate();
  return live;
}

}  // namespace quernel::schedule
