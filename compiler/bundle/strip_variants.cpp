#include "bundle/strip_variants.h"

#include <algorithm>
#include <map>

namespace quernel::bundle {
namespace {

constexpr uint64_t kAlignment = 64;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// What the plans that stay read of a constants segment, packed in the order of their first reads, as
// bundle_from_schedule packs it.
class Packer {
 public:
  // Before place(): all ranges that are read.
  void add(uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return;
    uint64_t begin = offset / kAlignment * kAlignment, end = offset + bytes;
    auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin() && std::prev(it)->second.end > begin) --it;
    while (it != ranges_.end() && it->first < end) {
      begin = std::min(begin, it->first);
      end = std::max(end, it->second.end);
      it = ranges_.erase(it);
    }
    ranges_[begin] = {end};
  }

  // -> where the byte at `offset` is now.
  uint64_t place(uint64_t offset, uint64_t bytes) {
    if (bytes == 0) {
      if (empty_ == kNowhere) empty_ = bytes_;
      return empty_;
    }
    auto it = std::prev(ranges_.upper_bound(offset));
    Range& range = it->second;
    if (range.place == kNowhere) {
      range.place = bytes_;
      bytes_ = aligned(bytes_ + range.end - it->first);
    }
    return range.place + (offset - it->first);
  }

  ConstantsSegment packed(const ConstantsSegment& from) const {
    ConstantsSegment to;
    to.bytes = bytes_;
    for (const auto& [begin, range] : ranges_)
      for (const ConstantPiece& piece : from.pieces) {
        uint64_t first = std::max(begin, piece.offset);
        uint64_t last = std::min(range.end, piece.offset + piece.bytes);
        if (first >= last) continue;
        to.pieces.push_back({range.place + (first - begin), last - first,
                             piece.view.subspan(first - piece.offset, last - first), nullptr});
      }
    std::sort(to.pieces.begin(), to.pieces.end(),
              [](const ConstantPiece& a, const ConstantPiece& b) { return a.offset < b.offset; });
    return to;
  }

 private:
  static constexpr uint64_t kNowhere = ~uint64_t{0};
  struct Range {
    uint64_t end = 0;
    uint64_t place = kNowhere;
  };
  std::map<uint64_t, Range> ranges_;  // by their begin, disjoint
  uint64_t bytes_ = 0, empty_ = kNowhere;
};

class Stripper {
 public:
  Stripper(BundleContents from, const std::vector<uint32_t>& variants)
      : expressions_from_(std::move(from.expressions)) {
    to_.producer = std::move(from.producer);
    to_.rounding = std::move(from.rounding);
    to_.properties = std::move(from.properties);
    to_.symbols = std::move(from.symbols);
    to_.constants = std::move(from.constants);
    to_.arenas = std::move(from.arenas);
    to_.states = std::move(from.states);
    to_.test_vectors = std::move(from.test_vectors);
    for (uint32_t v : variants) {
      int32_t& companion = to_.variants.emplace_back(std::move(from.variants[v])).companion;
      if (companion < 0) continue;
      auto [it, fresh] = companions_.try_emplace(companion, static_cast<int32_t>(to_.companions.size()));
      if (fresh) to_.companions.push_back(std::move(from.companions[static_cast<size_t>(companion)]));
      companion = it->second;
    }
    for (EntryPoint& entry : from.entry_points) {
      std::vector<Plan> plans = std::move(entry.plans);
      EntryPoint& kept = to_.entry_points.emplace_back(std::move(entry));
      kept.plans.clear();
      for (size_t i = 0; i < variants.size(); ++i) {
        kept.plans.push_back(std::move(plans[variants[i]]));
        kept.plans.back().variant = static_cast<uint32_t>(i);
      }
    }
  }

  BundleContents run() {
    find_packable();
    find_workspace_ends();
    for (Symbol& symbol : to_.symbols) number(symbol.max_expression);
    for (EntryPoint& entry : to_.entry_points) {
      for (std::vector<Tensor>* tensors : {&entry.inputs, &entry.outputs})
        for (Tensor& tensor : *tensors) {
          for (int32_t& expression : tensor.shape_expressions) number(expression);
          number(to_.arenas[tensor.arena].bytes_expression);
        }
      for (Plan& plan : entry.plans)
        for (Item& item : plan.items) renew(item);
      for (const Plan& plan : entry.plans)
        for (const Item& item : plan.items)
          for (const Binding& b : item.bindings)
            if (to_.arenas[b.arena].kind == ArenaKind::kWorkspace) number_once(b.arena);
    }
    for (uint32_t a = 0; a < to_.arenas.size(); ++a) finish(a);
    return std::move(to_);
  }

 private:
  // Expressions keep their order of first use.
  void number(int32_t& expression) {
    if (expression < 0) return;
    auto [it, fresh] = expressions_.try_emplace(expression, static_cast<int32_t>(to_.expressions.size()));
    if (fresh) to_.expressions.push_back(expressions_from_[static_cast<size_t>(expression)]);
    expression = it->second;
  }
  void number_once(uint32_t arena) {
    if (numbered_.emplace(arena, true).second) number(to_.arenas[arena].bytes_expression);
  }

  template <class Visit>
  void each_binding(Visit visit) const {
    for (const EntryPoint& entry : to_.entry_points)
      for (const Plan& plan : entry.plans)
        for (const Item& item : plan.items)
          for (const Binding& b : item.bindings) visit(b);
  }

  // Arenas of constants, and what is read of them; those read at places that depend on symbols stay as they
  // are, and so do those that share a segment.
  void find_packable() {
    std::map<int32_t, int> users;
    for (const Arena& arena : to_.arenas) users[arena.constants] += 1;
    for (uint32_t a = 0; a < to_.arenas.size(); ++a)
      if (to_.arenas[a].kind == ArenaKind::kConstants && users[to_.arenas[a].constants] == 1) packers_[a];
    each_binding([&](const Binding& b) {
      if (b.offset_expression >= 0 || b.bytes_expression >= 0)
        packers_.erase(b.arena), varying_[b.arena] = true;
    });
    each_binding([&](const Binding& b) {
      if (auto it = packers_.find(b.arena); it != packers_.end()) it->second.add(b.offset, b.bytes);
    });
  }

  void find_workspace_ends() {
    workspace_ends_.resize(to_.arenas.size());
    each_binding([&](const Binding& b) {
      uint64_t& end = workspace_ends_[b.arena];
      if (to_.arenas[b.arena].kind == ArenaKind::kWorkspace) end = std::max(end, b.offset + b.bytes);
    });
  }

  void renew(Item& item) {
    number(item.workgroups_expression);
    for (int32_t& expression : item.symbols) number(expression);
    number(item.copy_bytes_expression);
    number(item.count_expression);
    number(item.condition_expression);
    for (Binding& b : item.bindings) {
      number(b.offset_expression);
      number(b.bytes_expression);
      if (auto it = packers_.find(b.arena); it != packers_.end())
        b.offset = it->second.place(b.offset, b.bytes);
    }
    number(item.flops_expression);
    number(item.bytes_read_expression);
    number(item.bytes_written_expression);
  }

  void finish(uint32_t index) {
    Arena& arena = to_.arenas[index];
    if (auto it = packers_.find(index); it != packers_.end() && arena.constants >= 0) {
      ConstantsSegment& segment = to_.constants[static_cast<size_t>(arena.constants)];
      segment = it->second.packed(segment);
      arena.bytes = segment.bytes;
    }
    if (arena.kind != ArenaKind::kWorkspace) return;
    number_once(index);
    if (arena.bytes_expression >= 0 || varying_.count(index) > 0) return;
    arena.bytes = std::min(arena.bytes, aligned(workspace_ends_[index]));
  }

  std::vector<SizeExpression> expressions_from_;
  BundleContents to_;
  std::vector<uint64_t> workspace_ends_;  // by arena
  std::map<uint32_t, Packer> packers_;    // by arena
  std::map<uint32_t, bool> varying_;      // arenas used at places that depend on symbols
  std::map<uint32_t, bool> numbered_;     // workspaces
  std::map<int32_t, int32_t> expressions_, companions_;
};

}  // namespace

BundleContents strip_variants(BundleContents contents, const std::vector<uint32_t>& variants) {
  return Stripper(std::move(contents), variants).run();
}

}  // namespace quernel::bundle
