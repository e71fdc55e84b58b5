#include "pipeline/fit_ram.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "graph/multiply_adds.h"
#include "graph/passes/passes.h"
#include "graph/strips.h"
#include "pipeline/run_passes.h"
#include "schedule/storage.h"

namespace quernel {
namespace {

constexpr size_t kLayersAround = 6;                             // the largest need, in front of it and behind
constexpr int64_t kCounts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};  // of strips
constexpr int kRounds = 3;                                      // each makes strips of one run of layers

// What a graph needs when it is scheduled.
struct Need {
  uint64_t bytes = 0;  // of workspace and states
  std::string peak;    // a value that is written where the workspace is fullest
};

Expected<Need> need_of(const Graph& graph, const Target& target, CompileOptions options) {
  options.dump_dir.clear(), options.print_after.clear(), options.on_stage = nullptr;
  schedule::Packings packings;
  QUERNEL_TRY(schedule::Schedule s, make_schedule(graph, target, packings, options));
  Need need;
  for (const schedule::Region& region : s.regions)
    need.bytes += static_cast<uint64_t>(region.bytes.estimate());
  for (const schedule::Buffer& buffer : s.buffers)
    if (buffer.kind == schedule::BufferKind::kState)
      need.bytes += static_cast<uint64_t>(buffer.bytes.estimate());
  const std::vector<int64_t> live = schedule::live_bytes(s);
  const auto fullest = std::max_element(live.begin(), live.end());
  if (fullest == live.end()) return need;
  const schedule::Item& item = s.items[static_cast<size_t>(fullest - live.begin())];
  if (item.group >= 0 && !s.groups[item.group].outputs.empty())
    need.peak = s.graph.values[s.groups[item.group].outputs[0]].name;
  return need;
}

// Values that layers begin with: what is stored whatever groups are formed, in order.
std::vector<ValueId> layer_values(const Graph& graph) {
  std::vector<char> begins(graph.values.size(), 0), varies(graph.values.size(), 0);
  for (ValueId v : graph.inputs) varies[v] = 1;
  for (const Node& node : graph.nodes) {
    for (ValueId v : node.inputs) {
      varies[node.output] |= varies[v];
      if (!is_elementwise(node.op) && node.op != OpKind::k_expand) begins[v] = 1;
    }
  }
  auto is_result = [&](ValueId v) {
    const Node* node = graph.def(v);
    return !node || is_elementwise(node->op) || is_reduce(node->op) || node->op == OpKind::k_take;
  };
  std::vector<ValueId> values;
  for (size_t v = 0; v < graph.values.size(); ++v)
    if (const auto id = static_cast<ValueId>(v);
        begins[v] && varies[v] && graph.rank(id) >= 3 && is_result(id))
      values.push_back(id);
  return values;
}

struct Candidate {
  Graph graph;
  Strips strips;
  Need need;
  int64_t multiply_adds = 0;
};

// "0.5 % more", of `now` beside `before`.
std::string change(int64_t before, int64_t now) {
  const int64_t per_mille =
      before > 0 ? std::llround(1000.0 * static_cast<double>(now - before) / static_cast<double>(before)) : 0;
  const int64_t size = std::abs(per_mille);
  return std::to_string(size / 10) + "." + std::to_string(size % 10) +
         (per_mille < 0 ? " % fewer" : " % more");
}

std::string note_of(const Graph& graph, const Need& need, const Candidate& chosen) {
  const Strips& strips = chosen.strips;
  return std::to_string(strips.count) + " strips of the " + to_string(graph.shape(strips.last)[strips.dim]) +
         " rows of '" + graph.values[strips.last].name + "', from '" + graph.values[strips.first].name +
         "' on: " + std::to_string(chosen.need.bytes) + " bytes of workspace and states instead of " +
         std::to_string(need.bytes) + ", " + change(multiply_adds(graph).estimate(), chosen.multiply_adds) +
         " multiply-adds";
}

class Search {
 public:
  Search(const Graph& graph, const Target& target, const CompileOptions& options, uint64_t most)
      : graph_(graph), target_(target), options_(options), most_(most), layers_(layer_values(graph)) {}

  // The best candidate that needs less than the graph itself; nullopt: there is none.
  Expected<std::optional<Candidate>> run(const Need& need) {
    best_need_ = need.bytes;
    size_t peak = 0;
    for (size_t i = 0; i < layers_.size(); ++i)
      if (graph_.values[layers_[i]].name == need.peak) peak = i;
    const size_t begin = peak > kLayersAround ? peak - kLayersAround : 0;
    for (size_t first = begin; first < layers_.size() && first <= peak + 1; ++first)
      for (size_t last = std::max(first + 1, peak); last < layers_.size() && last <= peak + kLayersAround;
           ++last)
        QUERNEL_CHECK(try_dims(layers_[first], layers_[last]));
    return std::move(best_);
  }

 private:
  // Along the outermost dim that can be cut.
  Status try_dims(ValueId first, ValueId last) {
    for (size_t dim = 0; dim < graph_.shape(last).size(); ++dim) {
      if (!compute_in_strips(graph_, {first, last, dim, kCounts[0]})) continue;
      return try_counts({first, last, dim});
    }
    return {};
  }

  // More strips for as long as they save something.
  Status try_counts(const Strips& strips) {
    uint64_t least = UINT64_MAX;
    for (int64_t count : kCounts) {
      Candidate c{{}, strips, {}, 0};
      c.strips.count = count;
      std::optional<Graph> in_strips = compute_in_strips(graph_, c.strips);
      if (!in_strips) break;
      QUERNEL_TRY(c.graph, eliminate_dead_nodes(*in_strips));
      QUERNEL_TRY(c.need, need_of(c.graph, target_, options_));
      c.multiply_adds = multiply_adds(c.graph).estimate();
      if (c.need.bytes >= least) break;
      least = c.need.bytes;
      const bool fits = c.need.bytes <= most_;
      consider(std::move(c));
      if (fits) break;
    }
    return {};
  }

  // One that fits is better than one that does not; else multiply-adds decide, or bytes.
  void consider(Candidate c) {
    const bool fits = c.need.bytes <= most_, best_fits = best_ && best_->need.bytes <= most_;
    const bool better =
        fits ? !best_fits || c.multiply_adds < best_->multiply_adds : !best_fits && c.need.bytes < best_need_;
    if (!better) return;
    best_need_ = c.need.bytes;
    best_ = std::move(c);
  }

  const Graph& graph_;
  const Target& target_;
  const CompileOptions& options_;
  const uint64_t most_;
  const std::vector<ValueId> layers_;
  uint64_t best_need_ = 0;
  std::optional<Candidate> best_;
};

}  // namespace

Expected<FittedGraph> fit_ram(Graph graph, const Target& target, const CompileOptions& options) {
  FittedGraph result{std::move(graph), {}};
  if (options.max_ram == 0 || !result.graph.symbols.empty()) return result;
  const uint64_t most = options.max_ram;
  QUERNEL_TRY(Need need, need_of(result.graph, target, options));
  for (int round = 0; round < kRounds && need.bytes > most; ++round) {
    QUERNEL_TRY(std::optional<Candidate> chosen, Search(result.graph, target, options, most).run(need));
    if (!chosen) break;
    result.notes.push_back(note_of(result.graph, need, *chosen));
    need = chosen->need;
    result.graph = std::move(chosen->graph);
  }
  return result;
}

}  // namespace quernel
