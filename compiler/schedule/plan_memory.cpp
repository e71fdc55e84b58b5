// Items with their hazards and analysis; live ranges; arena offsets by largest-first best fit, in place where
// a kernel reads an element just before it writes it.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "schedule/schedule.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kAlignment = 64;
int64_t align(int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// Elements from the first to one past the last that a stored value spans.
int64_t span(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return 0;
    last += (dims[d] - 1) * strides[d];
  }
  return last + 1;
}

class Planner {
 public:
  explicit Planner(Schedule& schedule) : s_(schedule), g_(schedule.graph) {}

  void run() {
    for (size_t i = 0; i < s_.groups.size(); ++i) add_item(static_cast<int>(i));
    live_ranges();
    share_in_place();
    place_constants();
    place_workspace();
    find_hazards();
  }

 private:
  Binding bind(ValueId v, bool write) {
    const Storage& storage = s_.storage[v];
    DType dtype = g_.dtype(v);
    return {v, storage.buffer, byte_size(dtype, storage.offset),
            byte_size(dtype, span(static_dims(g_.shape(v)), storage.strides)), write};
  }

  void add_item(int index) {
    const Group& group = s_.groups[index];
    if (group.kind == GroupKind::kCat && group.copied.empty()) return;  // written in place
    Item item;
    item.group = index;
    bool empty = true;
    for (ValueId v : group.outputs) {
      item.bindings.push_back(bind(v, true));
      empty &= item.bindings.back().bytes == 0;
    }
    if (empty) return;
    for (ValueId v : group.reads) item.bindings.push_back(bind(v, false));
    if (group.packed_buffer >= 0)
      item.bindings.push_back(
          {kNoValue, group.packed_buffer, 0, s_.buffers[group.packed_buffer].bytes, false});
    if (group.scratch_buffer >= 0)
      item.bindings.push_back(
          {kNoValue, group.scratch_buffer, 0, s_.buffers[group.scratch_buffer].bytes, true});
    analyse(group, item);
    s_.items.push_back(std::move(item));
  }

  void analyse(const Group& group, Item& item) {
    for (const Binding& b : item.bindings) (b.write ? item.bytes_written : item.bytes_read) += b.bytes;
    auto elements = [&](ValueId v) { return *element_count(static_dims(g_.shape(v))); };
    for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
      for (int n : *nodes) {
        const Node& node = g_.nodes[n];
        if (node.op == OpKind::k_contract) {
          int64_t points = 2;
          for (const Contraction::Axis& axis : node.attributes.contraction.axes) points *= axis.extent;
          item.flops += points;
        } else if (is_reduce(node.op) || is_scan(node.op)) {
          item.flops += elements(node.inputs[0]);
        } else if (is_elementwise(node.op)) {
          item.flops += elements(node.output);
        }
      }
  }

  void live_ranges() {
    for (size_t i = 0; i < s_.items.size(); ++i)
      for (const Binding& b : s_.items[i].bindings) {
        Buffer& buffer = s_.buffers[b.buffer];
        if (buffer.first_item < 0) buffer.first_item = static_cast<int>(i);
        buffer.last_item = static_cast<int>(i);
      }
  }

  // Values that the group reads at exactly the indices it writes: operands of members, not seen through any
  // index map.
  bool read_elementwise_only(const Group& group, ValueId v) const {
    if (group.kind == GroupKind::kCat || group.kind == GroupKind::kOrdered) return false;
    auto uses = [&](int n) {
      const Node& node = g_.nodes[n];
      return std::find(node.inputs.begin(), node.inputs.end(), v) != node.inputs.end();
    };
    for (int n : group.nodes)
      if (!is_elementwise(g_.nodes[n].op) && uses(n)) return false;
    std::unordered_set<ValueId> seen;
    std::vector<ValueId> stack;
    for (int n : group.nodes)
      for (ValueId x : g_.nodes[n].inputs) stack.push_back(x);
    while (!stack.empty()) {
      ValueId x = stack.back();
      stack.pop_back();
      if (!seen.insert(x).second || s_.storage[x].valid()) continue;
      const Node* node = g_.def(x);
      if (!node || std::find(group.nodes.begin(), group.nodes.end(), g_.values[x].node) != group.nodes.end())
        continue;
      for (ValueId y : node->inputs) {
        if (y == v) return false;  // through a movement op or a prologue
        stack.push_back(y);
      }
    }
    return true;
  }

  void share_in_place() {
    for (size_t i = 0; i < s_.items.size(); ++i) {
      const Item& item = s_.items[i];
      const Group& group = s_.groups[item.group];
      if (group.outputs.size() != 1 || group.kind == GroupKind::kReduce) continue;
      Buffer& target = s_.buffers[item.bindings[0].buffer];
      const Binding& out = item.bindings[0];
      if (target.kind != BufferKind::kWorkspace || target.first_item != static_cast<int>(i) ||
          out.bytes != target.bytes)
        continue;
      for (const Binding& in : item.bindings) {
        if (in.write || in.value == kNoValue) continue;
        Buffer& source = s_.buffers[in.buffer];
        if (source.kind != BufferKind::kWorkspace || source.last_item != static_cast<int>(i) ||
            source.bytes != target.bytes || in.bytes != source.bytes ||
            element_size(source.dtype) != element_size(target.dtype) || shared_.count(in.buffer) ||
            g_.shape(in.value) != g_.shape(out.value) ||
            s_.storage[in.value].strides != s_.storage[out.value].strides ||
            !read_elementwise_only(group, in.value))
          continue;
        // Another binding of the same item may read the source in another way.
        int readers = 0;
        for (const Binding& other : item.bindings) readers += other.buffer == in.buffer;
        if (readers != 1) continue;
        target.shares = in.buffer;
        shared_.insert(in.buffer);
        break;
      }
    }
  }

  void place_constants() {
    int64_t offset = 0;
    for (Buffer& buffer : s_.buffers) {
      if (buffer.kind != BufferKind::kConstant || buffer.first_item < 0) continue;
      buffer.offset = offset;
      offset = align(offset + buffer.bytes);
    }
    s_.constant_bytes = offset;
  }

  int root(int b) const {
    while (s_.buffers[b].shares >= 0) b = s_.buffers[b].shares;
    return b;
  }

  void place_workspace() {
    struct Block {
      int buffer, first, last;
      int64_t bytes;
    };
    std::map<int, Block> blocks;  // by root buffer: chains of in-place buffers are one block
    for (size_t b = 0; b < s_.buffers.size(); ++b) {
      const Buffer& buffer = s_.buffers[b];
      if (buffer.kind != BufferKind::kWorkspace || buffer.first_item < 0 || buffer.bytes == 0) continue;
      int r = root(static_cast<int>(b));
      auto [it, fresh] =
          blocks.try_emplace(r, Block{r, buffer.first_item, buffer.last_item, align(buffer.bytes)});
      it->second.first = std::min(it->second.first, buffer.first_item);
      it->second.last = std::max(it->second.last, buffer.last_item);
    }
    std::vector<Block> order;
    for (auto& [r, block] : blocks) order.push_back(block);
    std::stable_sort(order.begin(), order.end(),
                     [](const Block& a, const Block& b) { return a.bytes > b.bytes; });
    std::vector<Block> placed;
    for (const Block& block : order) {
      // Gaps between blocks that are alive at the same time; the smallest that fits.
      std::vector<std::pair<int64_t, int64_t>> taken;
      for (const Block& other : placed)
        if (other.first <= block.last && block.first <= other.last)
          taken.emplace_back(s_.buffers[other.buffer].offset, s_.buffers[other.buffer].offset + other.bytes);
      std::sort(taken.begin(), taken.end());
      int64_t best = -1, best_gap = INT64_MAX, end = 0;
      for (auto [from, to] : taken) {
        if (from - end >= block.bytes && from - end < best_gap) best = end, best_gap = from - end;
        end = std::max(end, to);
      }
      s_.buffers[block.buffer].offset = best >= 0 ? best : end;
      s_.workspace_bytes = std::max(s_.workspace_bytes, s_.buffers[block.buffer].offset + block.bytes);
      placed.push_back(block);
    }
    for (size_t b = 0; b < s_.buffers.size(); ++b)
      if (s_.buffers[b].shares >= 0) s_.buffers[b].offset = s_.buffers[root(static_cast<int>(b))].offset;
  }

  // Every pair of accesses to the same bytes of which one writes is ordered. Per arena, the accesses since
  // the last write of each byte range.
  void find_hazards() {
    struct Access {
      int64_t from, to;
      int item, buffer;
      bool write;
    };
    reaches_.resize(s_.items.size());
    std::map<int, std::vector<Access>> live;  // arena: -1 workspace, else the buffer (slots)
    for (size_t i = 0; i < s_.items.size(); ++i) {
      Item& item = s_.items[i];
      std::map<int, Hazard> found;
      for (const Binding& b : item.bindings) {
        const Buffer& buffer = s_.buffers[b.buffer];
        if (buffer.kind == BufferKind::kConstant || b.bytes == 0) continue;
        int64_t base = buffer.kind == BufferKind::kWorkspace ? buffer.offset : 0;
        for (const Access& a : live[buffer.kind == BufferKind::kWorkspace ? -1 : b.buffer]) {
          if (a.to <= base + b.offset || base + b.offset + b.bytes <= a.from || (!a.write && !b.write))
            continue;
          Hazard hazard = a.buffer != b.buffer && root(a.buffer) != root(b.buffer) ? Hazard::kAlias
                          : a.write && b.write                                     ? Hazard::kWriteAfterWrite
                          : a.write                                                ? Hazard::kReadAfterWrite
                                                                                   : Hazard::kWriteAfterRead;
          auto [it, fresh] = found.try_emplace(a.item, hazard);
          if (!fresh && hazard == Hazard::kReadAfterWrite) it->second = hazard;
        }
      }
      // Latest first; those that a later one already waits for are implied.
      for (auto it = found.rbegin(); it != found.rend(); ++it) {
        std::vector<bool>& before = reaches_[i];
        before.resize(i, false);
        if (before[it->first]) continue;
        item.dependencies.insert(item.dependencies.begin(), {it->first, it->second});
        before[it->first] = true;
        const std::vector<bool>& further = reaches_[it->first];
        for (size_t k = 0; k < further.size(); ++k)
          if (further[k]) before[k] = true;
      }
      for (const Binding& b : item.bindings) {
        const Buffer& buffer = s_.buffers[b.buffer];
        if (buffer.kind == BufferKind::kConstant || b.bytes == 0) continue;
        int64_t base = buffer.kind == BufferKind::kWorkspace ? buffer.offset : 0;
        std::vector<Access>& accesses = live[buffer.kind == BufferKind::kWorkspace ? -1 : b.buffer];
        Access access{base + b.offset, base + b.offset + b.bytes, static_cast<int>(i), b.buffer, b.write};
        // A write orders everything that it covers wholly: later accesses need only wait for it.
        bool whole = b.write && b.value != kNoValue &&
                     s_.storage[b.value].strides == contiguous_strides(static_dims(g_.shape(b.value)));
        if (whole)
          std::erase_if(accesses,
                        [&](const Access& a) { return a.from >= access.from && a.to <= access.to; });
        accesses.push_back(access);
      }
    }
  }

  Schedule& s_;
  const Graph& g_;
  std::unordered_set<int> shared_;
  std::vector<std::vector<bool>> reaches_;  // per item: the earlier items that it comes after
};

}  // namespace

Status plan_memory(Schedule& schedule) {
  Planner(schedule).run();
  return {};
}

}  // namespace quernel::schedule
