// Items with their hazards and analysis; live ranges; arena offsets by largest-first best fit, in place where
// a kernel reads an element just before it writes it; of several regions, the hottest buffers in the first.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "graph/control.h"
#include "schedule/contraction/operand_access.h"
#include "schedule/custom_call.h"
#include "schedule/in_place.h"
#include "schedule/overlap.h"
#include "schedule/steps.h"
#include "schedule/storage.h"

namespace quernel::schedule {
namespace {

bool is_zero(const Dim& d) { return d == Dim(0); }

class Planner {
 public:
  Planner(Schedule& schedule, const Target& target) : s_(schedule), g_(schedule.graph), target_(target) {}

  void run() {
    read_symbols(-1);
    for (size_t i = 0; i < s_.groups.size(); ++i) {
      add_item(static_cast<int>(i));
      read_symbols(static_cast<int>(i));
    }
    live_ranges();
    share_in_place();
    if (target_.memory_is_dear()) find_overlaps();
    for (Item& item : s_.items)
      if (item.group >= 0) analyse(s_.groups[item.group], item);
    place_constants();
    place_workspace();
    find_hazards();
  }

 private:
  Binding bind(ValueId v, bool write) {
    const Storage& storage = s_.storage[v];
    DType dtype = g_.dtype(v);
    // A place that depends on a run-time symbol is found by the kernel, within the whole buffer.
    if (!storage.offset.is_bound()) return {v, storage.buffer, 0, s_.buffers[storage.buffer].bytes, write};
    Dim bytes = byte_size(dtype, span(g_.shape(v), storage.strides)).upper_bound();
    // Nothing lies anywhere: its place within an empty cat is no place of the buffer.
    return {v, storage.buffer, is_zero(bytes) ? Dim(0) : byte_size(dtype, storage.offset), bytes, write};
  }

  // Run-time symbols whose values the group has stored (-1: graph inputs) are read before anything uses them.
  void read_symbols(int group) {
    for (const Graph::SymbolSource& source : g_.symbol_sources) {
      const std::vector<ValueId>* stored = group < 0 ? &g_.inputs : &s_.groups[group].outputs;
      if (std::find(stored->begin(), stored->end(), source.value) == stored->end()) continue;
      Item item;
      item.symbol = source.symbol;
      item.bindings.push_back(bind(source.value, false));
      s_.items.push_back(std::move(item));
    }
  }

  void add_item(int index) {
    const Group& group = s_.groups[index];
    if (group.kind == GroupKind::kCat && group.copied.empty()) return;  // written in place
    Item item;
    item.group = index;
    if (group.kind == GroupKind::kCustom) return add_custom(group, std::move(item));
    bool empty = true;
    for (ValueId v : group.outputs) {
      Binding& binding = item.bindings.emplace_back(bind(v, true));
      binding.whole = is_dense(binding) && !leaves_some(group);
      empty &= is_zero(binding.bytes);
    }
    const bool only_parts = group.stream && group.outputs.empty();  // of an attention's keys
    if (empty && group.kind != GroupKind::kControl && !only_parts) return;
    for (ValueId v : group.reads) item.bindings.push_back(bind(v, false));
    if (group.kind == GroupKind::kContract && group.contraction.slack > 0) {
      const ValueId a = resolve_operand(g_, g_.nodes[group.anchor], group.contraction.swapped ? 1 : 0).base;
      for (Binding& binding : item.bindings)
        if (binding.value == a) binding.bytes += group.contraction.slack;
    }
    for (int packed : group.packed_buffers)
      item.bindings.push_back({kNoValue, packed, 0, s_.buffers[packed].bytes, false});
    if (group.scratch_buffer >= 0)
      item.bindings.push_back(
          {kNoValue, group.scratch_buffer, 0, s_.buffers[group.scratch_buffer].bytes, true});
    s_.items.push_back(std::move(item));
  }

  // The value's elements are all that lies in the binding.
  bool is_dense(const Binding& b) const {
    return b.value != kNoValue && s_.storage[b.value].strides == contiguous_strides(g_.shape(b.value)) &&
           b.bytes == byte_size(g_.dtype(b.value), element_count(g_.shape(b.value)));
  }

  // A cat that others write parts of, a scatter over its template.
  bool leaves_some(const Group& group) const {
    const Node& anchor = g_.nodes[group.anchor];
    return group.kind == GroupKind::kCat ||
           (is_scatter(anchor.op) && same_place(s_, anchor.inputs[0], anchor.output));
  }

  // Operands in order, then results.
  void add_custom(const Group& group, Item item) {
    bool empty = true;
    for (ValueId v : g_.nodes[group.anchor].inputs) item.bindings.push_back(bind(v, false));
    for (ValueId v : group.outputs) {
      Binding& binding = item.bindings.emplace_back(bind(v, true));
      binding.whole = true;
      empty &= is_zero(binding.bytes);
    }
    if (!empty) s_.items.push_back(std::move(item));
  }

  // Bodies as often as they run; a branch as its first.
  void analyse_bodies(const Group& group, Item& item) {
    const Control& control = *g_.nodes[group.anchor].attributes.control;
    Dim times = g_.nodes[group.anchor].op == OpKind::k_loop ? iterations(control) : Dim(1);
    for (const Item& inner : group.bodies[0].items) {
      item.flops += inner.flops * times;
      item.bytes_read += inner.bytes_read * times;
      item.bytes_written += inner.bytes_written * times;
    }
  }

  void analyse(const Group& group, Item& item) {
    if (group.kind == GroupKind::kControl) return analyse_bodies(group, item);
    for (const Binding& b : item.bindings) (b.write ? item.bytes_written : item.bytes_read) += b.bytes;
    const Node& anchor = g_.nodes[group.anchor];
    if (is_scatter(anchor.op) && same_place(s_, anchor.inputs[0], anchor.output)) {
      Dim whole = byte_size(g_.dtype(anchor.output), element_count(g_.shape(anchor.output)));
      Dim updates = byte_size(g_.dtype(anchor.output), element_count(g_.shape(anchor.inputs[2])));
      bool combines = anchor.attributes.scatter != ScatterMode::kSet;
      item.bytes_read += (combines ? updates : Dim(0)) - whole;
      item.bytes_written += updates - whole;
    }
    auto elements = [&](ValueId v) { return element_count(g_.shape(v)); };
    auto add_products = [&](const Node& node) {
      Dim points = 2;
      for (const Contraction::Axis& axis : node.attributes.contraction.axes) points *= axis.extent;
      item.flops += points;
    };
    // The products with values belong to the kernel of the parts.
    const int elsewhere = group.stream && group.stream->combines ? group.stream->result : -1;
    if (group.stream && !group.stream->combines && group.stream->parts > 1)
      add_products(g_.nodes[group.stream->result]);
    for (const std::vector<int>* nodes : {&group.nodes, &group.inlined})
      for (int n : *nodes) {
        const Node& node = g_.nodes[n];
        if (n == elsewhere) continue;
        if (node.op == OpKind::k_contract) {
          add_products(node);
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
    if (s_.io_in_workspace) keep_inputs_and_outputs();
  }

  // Inputs are written before the first item, outputs are read after the last.
  void keep_inputs_and_outputs() {
    int last = std::max(0, static_cast<int>(s_.items.size()) - 1);
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      if (g_.state_of_input(i)) continue;
      Buffer& buffer = s_.buffers[s_.storage[g_.inputs[i]].buffer];
      buffer.first_item = 0;
      buffer.last_item = std::max(buffer.last_item, 0);
    }
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      if (g_.state_of_output(i)) continue;
      Buffer& buffer = s_.buffers[s_.storage[g_.outputs[i].value].buffer];
      if (buffer.first_item < 0) buffer.first_item = last;
      buffer.last_item = last;
    }
  }

  void share_in_place() {
    for (size_t i = 0; i < s_.items.size(); ++i) {
      const Item& item = s_.items[i];
      if (item.group < 0) continue;
      const Group& group = s_.groups[item.group];
      if (group.outputs.size() != 1 || group.kind == GroupKind::kCustom) continue;
      Buffer& target = s_.buffers[item.bindings[0].buffer];
      const Binding& out = item.bindings[0];
      if (target.kind != BufferKind::kWorkspace || target.first_item != static_cast<int>(i) ||
          !(out.bytes == target.bytes))
        continue;
      for (const Binding& in : item.bindings) {
        if (in.write || in.value == kNoValue) continue;
        Buffer& source = s_.buffers[in.buffer];
        if (source.kind != BufferKind::kWorkspace || source.last_item != static_cast<int>(i) ||
            !(source.bytes == target.bytes) || !(in.bytes == source.bytes) || shared_.count(in.buffer) ||
            !may_write_over(s_, group, in.value, out.value))
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

  // Which results may lie partly over an operand that dies there.
  void find_overlaps() {
    for (size_t i = 0; i < s_.items.size(); ++i) {
      const Item& item = s_.items[i];
      if (item.group < 0) continue;
      const Binding& out = item.bindings[0];
      if (!begins_at(out, static_cast<int>(i))) continue;
      for (const Binding& in : item.bindings) {
        if (in.write || in.value == kNoValue || !ends_at(in, static_cast<int>(i))) continue;
        const auto uses = std::count_if(item.bindings.begin(), item.bindings.end(), [&](const Binding& b) {
          return root(b.buffer) == root(in.buffer) || root(b.buffer) == root(out.buffer);
        });
        if (uses != 2) continue;
        if (std::optional<Overlap> overlap =
                find_overlap(s_, s_.groups[item.group], out.value, in.value, target_))
          overlaps_[{root(out.buffer), root(in.buffer)}] = {aligned(overlap->before), aligned(overlap->after),
                                                            item.group};
      }
    }
  }
  bool begins_at(const Binding& b, int item) const {
    const Buffer& buffer = s_.buffers[b.buffer];
    return b.write && b.value != kNoValue && buffer.kind == BufferKind::kWorkspace && buffer.shares < 0 &&
           buffer.first_item == item;
  }
  bool ends_at(const Binding& b, int item) const {
    return s_.buffers[b.buffer].kind == BufferKind::kWorkspace && s_.buffers[b.buffer].last_item == item &&
           !shared_.contains(b.buffer);
  }

  void place_constants() {
    Dim offset = 0;
    for (Buffer& buffer : s_.buffers) {
      if (buffer.kind != BufferKind::kConstant || buffer.first_item < 0) continue;
      buffer.offset = offset;
      offset = aligned(offset + buffer.bytes);
    }
    s_.constant_bytes = offset.value();
  }

  int root(int b) const { return root_buffer(s_, b); }

  // A block of the workspace: a buffer and those written in place over it.
  struct Block {
    int buffer, first, last;
    Dim bytes;
    double heat = 0;          // bytes read and written per byte
    Dim offset = 0, end = 0;  // known once it has a place
    void put_at(const Dim& place) { offset = place, end = place + bytes; }
  };

  void place_workspace() {
    std::map<int, Block> blocks;  // by root buffer
    for (size_t b = 0; b < s_.buffers.size(); ++b) {
      const Buffer& buffer = s_.buffers[b];
      if (buffer.kind != BufferKind::kWorkspace || buffer.first_item < 0 || is_zero(buffer.bytes)) continue;
      int r = root(static_cast<int>(b));
      auto [it, fresh] =
          blocks.try_emplace(r, Block{r, buffer.first_item, buffer.last_item, aligned(buffer.bytes)});
      it->second.first = std::min(it->second.first, buffer.first_item);
      it->second.last = std::max(it->second.last, buffer.last_item);
    }
    std::vector<Block> order;
    for (auto& [r, block] : blocks) order.push_back(block);
    if (s_.regions.back().shared)
      place_by_device(std::move(order));
    else if (s_.regions.size() == 1)
      place_largest_first(std::move(order), 0);
    else
      place_hottest_first(std::move(order), blocks);
    for (size_t b = 0; b < s_.buffers.size(); ++b)
      if (s_.buffers[b].shares >= 0) {
        const Buffer& shared = s_.buffers[root(static_cast<int>(b))];
        s_.buffers[b].offset = shared.offset;
        s_.buffers[b].region = shared.region;
      }
    choose_directions();
  }

  // A kernel goes backwards where its result lies over an operand and not early enough to go forwards.
  void choose_directions() {
    for (const auto& [buffers, apart] : overlaps_) {
      const Buffer &result = s_.buffers[buffers.first], &operand = s_.buffers[buffers.second];
      s_.groups[apart.group].contraction.backwards =
          result.region == operand.region && !always_le(result.offset + apart.before, operand.offset) &&
          !always_le(operand.offset + operand.bytes, result.offset) &&
          !always_le(result.offset + result.bytes, operand.offset);
    }
  }

  // Buffers that the companion CPU uses are in the last region, which both reach.
  void place_by_device(std::vector<Block> order) {
    std::unordered_set<int> touched;
    int last = static_cast<int>(s_.regions.size()) - 1;
    for (const Item& item : s_.items)
      if (item.group >= 0 && s_.groups[item.group].on_companion)
        for (const Binding& b : item.bindings) {
          touched.insert(root(b.buffer));
          s_.buffers[b.buffer].region = last;  // what is empty has no block
        }
    auto shared = std::stable_partition(order.begin(), order.end(),
                                        [&](const Block& block) { return !touched.contains(block.buffer); });
    place_largest_first({shared, order.end()}, last);
    place_largest_first({order.begin(), shared}, 0);
  }

  void place_largest_first(std::vector<Block> order, int region) {
    std::stable_sort(order.begin(), order.end(),
                     [](const Block& a, const Block& b) { return a.bytes.estimate() > b.bytes.estimate(); });
    Dim all = place_in_order(order, s_.regions[region].bytes);
    if (target_.memory_is_dear()) {
      all = try_other_orders(order, all, s_.regions[region].bytes);
      // Kernels that go backwards take some instructions more: only for a smaller workspace.
      backwards_ = true;
      all = try_other_orders(order, all, s_.regions[region].bytes);
      backwards_ = false;
    }
    for (const Block& block : order) {
      s_.buffers[block.buffer].offset = block.offset;
      s_.buffers[block.buffer].region = region;
    }
    s_.regions[region].bytes = all;
  }

  // Returns what they take, together with `all`.
  Dim place_in_order(std::vector<Block>& order, Dim all) const {
    std::vector<Block> placed;
    for (Block& block : order) {
      block.put_at(place(block, placed, all));
      // Sums of sizes only: a maximum of ends that cannot be compared would make expressions grow with each
      // block.
      bool comparable = always_le(block.end, all) || always_le(all, block.end);
      if (!comparable) block.put_at(all);
      all = max(all, block.end);
      placed.push_back(block);
    }
    return all;
  }

  // From the latest to the earliest, so that results come before the operands that they may lie over; and what
  // lies highest is placed first, some times over. Keeps the best order.
  Dim try_other_orders(std::vector<Block>& best, Dim least, const Dim& all) const {
    constexpr int kMostTries = 64;
    constexpr size_t kMostBlocks = 1024;  // keeps compile times short
    if (best.size() > kMostBlocks || !least.is_const()) return least;
    std::vector<Block> by_size = best, latest_first = best;
    std::stable_sort(latest_first.begin(), latest_first.end(),
                     [](const Block& a, const Block& b) { return a.last > b.last; });
    for (std::vector<Block>& order : {std::ref(latest_first), std::ref(by_size)})
      for (int i = 0; i < kMostTries; ++i) {
        const Dim found = place_in_order(order, all);
        if (!found.is_const()) return least;
        if (found.value() < least.value()) least = found, best = order;
        auto highest = std::max_element(order.begin(), order.end(), [](const Block& a, const Block& b) {
          return a.end.estimate() < b.end.estimate();
        });
        if (highest == order.begin()) break;
        std::rotate(order.begin(), highest, highest + 1);
      }
    return least;
  }

  // The hottest first, each in the first region with room; in the last one where none has. Then each region
  // anew, the largest first, where that fits, too: it leaves smaller gaps.
  void place_hottest_first(std::vector<Block> order, std::map<int, Block>& blocks) {
    for (const Item& item : s_.items)
      for (const Binding& b : item.bindings)
        if (auto it = blocks.find(root(b.buffer)); it != blocks.end())
          it->second.heat += static_cast<double>(b.bytes.estimate());
    for (Block& block : order)
      block.heat = blocks.at(block.buffer).heat / static_cast<double>(block.bytes.estimate());
    std::stable_sort(order.begin(), order.end(),
                     [](const Block& a, const Block& b) { return a.heat > b.heat; });
    std::vector<std::vector<Block>> placed(s_.regions.size());
    for (Block& block : order)
      for (size_t r = 0; r < s_.regions.size(); ++r) {
        Region& region = s_.regions[r];
        block.put_at(place(block, placed[r], region.bytes));
        if (r + 1 != s_.regions.size() && region.capacity != 0 && block.end.estimate() > region.capacity)
          continue;
        s_.buffers[block.buffer].offset = block.offset;
        s_.buffers[block.buffer].region = static_cast<int>(r);
        region.bytes = max(region.bytes, block.end);
        placed[r].push_back(block);
        break;
      }
    for (size_t r = 0; r < s_.regions.size(); ++r) {
      Dim by_heat = s_.regions[r].bytes;
      s_.regions[r].bytes = 0;
      place_largest_first(placed[r], static_cast<int>(r));
      if (s_.regions[r].bytes.estimate() <= by_heat.estimate()) continue;
      s_.regions[r].bytes = by_heat;
      for (const Block& block : placed[r]) s_.buffers[block.buffer].offset = block.offset;
    }
  }

  // Where a block may not lie because of another: anywhere over it, but for a result and its operand.
  struct Taken {
    Dim offset = 0, end = 0;
  };
  Taken taken_by(const Block& other, const Block& block) const {
    if (auto over = overlaps_.find({block.buffer, other.buffer}); over != overlaps_.end())
      return {other.offset + block.bytes - min(over->second.before, block.bytes),
              backwards_ ? other.offset + min(over->second.after, other.bytes) : other.end};
    if (auto under = overlaps_.find({other.buffer, block.buffer}); under != overlaps_.end())
      return {backwards_ ? other.offset + block.bytes - min(under->second.after, block.bytes) : other.offset,
              other.offset + min(under->second.before, other.bytes)};
    return {other.offset, other.end};
  }

  // The smallest gap between the blocks alive at the same time that fits for all values of the symbols, else
  // the end of them all, or of the region where none is always the last.
  Dim place(const Block& block, const std::vector<Block>& placed, const Dim& end) const {
    std::vector<Taken> alive;  // at the same time
    bool known = block.bytes.is_const();
    for (const Block& other : placed)
      if (other.first <= block.last && block.first <= other.last) {
        alive.push_back(taken_by(other, block));
        known &= other.offset.is_const() && other.bytes.is_const();
      }
    std::vector<Dim> candidates{0};
    for (const Taken& other : alive) candidates.push_back(other.end);
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Dim& a, const Dim& b) { return a.estimate() < b.estimate(); });
    // For typical values of the symbols: ends in order, and the lowest offset of the blocks from one on.
    std::vector<std::pair<int64_t, int64_t>> lowest_after;
    for (const Taken& other : alive) lowest_after.emplace_back(other.end.estimate(), other.offset.estimate());
    std::sort(lowest_after.begin(), lowest_after.end());
    for (size_t i = lowest_after.size(); i-- > 1;)
      lowest_after[i - 1].second = std::min(lowest_after[i - 1].second, lowest_after[i].second);
    const Dim* best = nullptr;
    int64_t best_gap = INT64_MAX, bytes = block.bytes.estimate();
    size_t next = 0;
    for (const Dim& candidate : candidates) {
      int64_t at = candidate.estimate();
      while (next < lowest_after.size() && lowest_after[next].first <= at) ++next;
      int64_t gap = next < lowest_after.size() ? lowest_after[next].second - at : INT64_MAX;
      if (gap < bytes || (best && gap >= best_gap)) continue;
      const Dim end_there = candidate + block.bytes;
      bool fits = known || std::all_of(alive.begin(), alive.end(), [&](const Taken& other) {
                    return always_le(other.end, candidate) || always_le(end_there, other.offset);
                  });
      if (fits) best = &candidate, best_gap = gap;
    }
    return best ? *best : end;
  }

  // Whether two buffers of the workspace have no byte in common; asked once per pair, as free sizes make it
  // costly.
  bool are_apart(int a, int b) {
    a = root(a);
    b = root(b);
    if (a == b || s_.buffers[a].kind != BufferKind::kWorkspace ||
        s_.buffers[b].kind != BufferKind::kWorkspace)
      return false;
    auto [it, fresh] = apart_.try_emplace(std::minmax(a, b));
    if (fresh) {
      const Buffer &x = s_.buffers[a], &y = s_.buffers[b];
      it->second = x.region != y.region || always_le(x.offset + x.bytes, y.offset) ||
                   always_le(y.offset + y.bytes, x.offset);
    }
    return it->second;
  }

  // Every pair of accesses to the same bytes of which one writes is ordered. Per arena, the accesses since
  // the last write of each byte range.
  void find_hazards() {
    struct Access {
      Dim from, to;
      int item, buffer;
      bool write;
      bool known;  // as numbers, which are compared first
      int64_t first, end;

      bool is_known_apart(const Access& b) const {
        return known && b.known && (end <= b.first || b.end <= first);
      }
      bool is_known_to_reach_beyond(const Access& b) const {
        return known && b.known && (first < b.first || b.end < end);
      }
    };
    auto access_of = [](size_t item, const Binding& b, const Dim& base) {
      Dim from = base + b.offset, to = from + b.bytes;
      bool known = from.is_const() && to.is_const();
      return Access{from,    to,    static_cast<int>(item),   b.buffer,
                    b.write, known, known ? from.value() : 0, known ? to.value() : 0};
    };
    reaches_.resize(s_.items.size());
    std::map<int, std::vector<Access>> live;  // -1 - the workspace's region, else the buffer (slots)
    for (size_t i = 0; i < s_.items.size(); ++i) {
      Item& item = s_.items[i];
      std::map<int, Hazard> found;
      for (const Binding& b : item.bindings) {
        const Buffer& buffer = s_.buffers[b.buffer];
        if (buffer.kind == BufferKind::kConstant || is_zero(b.bytes)) continue;
        Dim base = buffer.kind == BufferKind::kWorkspace ? buffer.offset : Dim(0);
        Access access = access_of(i, b, base);
        for (const Access& a : live[buffer.kind == BufferKind::kWorkspace ? -1 - buffer.region : b.buffer]) {
          if ((!a.write && !b.write) || a.is_known_apart(access) || are_apart(a.buffer, b.buffer)) continue;
          if (always_le(a.to, access.from) || always_le(access.to, a.from)) continue;
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
        if (buffer.kind == BufferKind::kConstant || is_zero(b.bytes)) continue;
        Dim base = buffer.kind == BufferKind::kWorkspace ? buffer.offset : Dim(0);
        std::vector<Access>& accesses =
            live[buffer.kind == BufferKind::kWorkspace ? -1 - buffer.region : b.buffer];
        Access access = access_of(i, b, base);
        // A write orders everything that it covers wholly: later accesses need only wait for it.
        if (b.write && is_dense(b))
          std::erase_if(accesses, [&](const Access& a) {
            return !a.is_known_to_reach_beyond(access) && !are_apart(a.buffer, access.buffer) &&
                   always_le(access.from, a.from) && always_le(a.to, access.to);
          });
        accesses.push_back(access);
      }
    }
  }

  Schedule& s_;
  const Graph& g_;
  const Target& target_;
  std::unordered_set<int> shared_;
  // How the result of a group and its operand (root buffers) may overlap: by how many bytes the one at least
  // begins before the other.
  struct Apart {
    Dim before = 0, after = 0;
    int group = -1;
  };
  std::map<std::pair<int, int>, Apart> overlaps_;
  bool backwards_ = false;                     // whether kernels may go backwards
  std::map<std::pair<int, int>, bool> apart_;  // of are_apart, by root buffers
  std::vector<std::vector<bool>> reaches_;     // per item: the earlier items that it comes after
};

}  // namespace

Status plan_memory(Schedule& schedule, const Target& target) {
  Planner(schedule, target).run();
  return {};
}

}  // namespace quernel::schedule
