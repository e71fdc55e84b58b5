// Which nodes of a GPU target run on the companion CPU: what the user says, else the cheapest division, which
// is a minimum cut: a node costs its estimated time on either side, a value that crosses over its transfer.
#include <fnmatch.h>

#include <algorithm>
#include <queue>

#include "graph/passes/passes.h"
#include "schedule/storage.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel::schedule {
namespace {

// What a GPU, or one core of a CPU, does in a nanosecond, at most.
struct Speed {
  double flops = 1, bytes = 1;
  double width = 1;  // results that are computed at once when it is fully used
  double call = 0;   // nanoseconds before a kernel begins
};

constexpr double kNanosecond = 1e-9;

Speed speed_of(const Target& target) {
  if (target.lanes_are_invocations())
    return {target.flops_per_second * kNanosecond, target.memory_bytes_per_second * kNanosecond,
            static_cast<double>(target.parallel_invocations), target.dispatch_seconds / kNanosecond};
  double width = target.lanes(4);
  double fma = target.has_fma ? 2 : 1;
  return {width * target.peak_fma_per_cycle * fma * target.core.ghz,
          target.core.memory_bytes_per_cycle * target.core.ghz, width, 100};
}

double elements(const Graph& graph, ValueId v) {
  return static_cast<double>(element_count(graph.shape(v)).estimate());
}
double bytes(const Graph& graph, ValueId v) {
  return static_cast<double>(byte_size(graph.dtype(v), element_count(graph.shape(v))).estimate());
}

// Nanoseconds, as a kernel of its own where the op begins one; others ride along with a neighbour's.
double time_of(const Graph& graph, const Node& node, const Speed& speed) {
  if (node.op == OpKind::k_constant || node.op == OpKind::k_dims || node.op == OpKind::k_result) return 0;
  if (is_movement(node.op) && node.op != OpKind::k_contiguous) return 0;
  double flops = elements(graph, node.output), results = flops, moved = bytes(graph, node.output);
  for (ValueId v : node.inputs) moved += bytes(graph, v);
  if (is_elementwise(node.op)) return std::max(flops / speed.flops, bytes(graph, node.output) / speed.bytes);
  if (node.op == OpKind::k_contract) {
    flops = 2;
    for (const Contraction::Axis& axis : node.attributes.contraction.axes)
      flops *= static_cast<double>(axis.extent.estimate());
  } else if (is_reduce(node.op)) {
    flops = elements(graph, node.inputs[0]);
  } else if (is_scan(node.op) || node.op == OpKind::k_argsort || is_scatter(node.op)) {
    // Step by step along the axis, or altogether.
    size_t axis = node.attributes.ints.empty() ? 0 : static_cast<size_t>(node.attributes.ints[0]);
    const Shape& shape = graph.shape(node.inputs[0]);
    flops = elements(graph, node.inputs[0]);
    double length = axis < shape.size() ? static_cast<double>(shape[axis].estimate()) : flops;
    results = is_scatter(node.op) ? 1 : flops / std::max(1.0, length);
    if (node.op == OpKind::k_argsort) flops *= 32;
  }
  double used = std::clamp(results / speed.width, 1 / speed.width, 1.0);
  return speed.call + std::max(flops / (speed.flops * used), moved / speed.bytes);
}

// Maximum flow by Dinic's algorithm; the cut is what can still be reached from the source.
class Cut {
 public:
  explicit Cut(size_t vertices) : first_(vertices, -1) {}
  void add(int from, int to, double capacity, double back = 0) {
    edges_.push_back({to, first_[from], capacity});
    first_[from] = static_cast<int>(edges_.size()) - 1;
    edges_.push_back({from, first_[to], back});
    first_[to] = static_cast<int>(edges_.size()) - 1;
  }
  std::vector<char> source_side(int source, int sink) {
    while (find_levels(source)[sink] >= 0) {
      next_ = first_;
      while (push(source, sink, kUnlimited) > kNothing) {
      }
    }
    std::vector<char> side(first_.size());
    for (size_t v = 0; v < side.size(); ++v) side[v] = levels_[v] >= 0;
    return side;
  }
  static constexpr double kUnlimited = 1e18;

 private:
  static constexpr double kNothing = 1e-3;  // of a nanosecond
  struct Edge {
    int to, next;
    double capacity;
  };
  const std::vector<int>& find_levels(int source) {
    levels_.assign(first_.size(), -1);
    levels_[source] = 0;
    std::queue<int> queue({source});
    for (; !queue.empty(); queue.pop())
      for (int e = first_[queue.front()]; e >= 0; e = edges_[e].next)
        if (edges_[e].capacity > kNothing && levels_[edges_[e].to] < 0) {
          levels_[edges_[e].to] = levels_[queue.front()] + 1;
          queue.push(edges_[e].to);
        }
    return levels_;
  }
  // Along one path of growing levels, without recursion: graphs are thousands of nodes deep.
  double push(int source, int sink, double limit) {
    std::vector<int> path;
    int at = source;
    while (at != sink) {
      int& e = next_[at];
      while (e >= 0 && (edges_[e].capacity <= kNothing || levels_[edges_[e].to] != levels_[at] + 1))
        e = edges_[e].next;
      if (e >= 0) {
        path.push_back(e);
        at = edges_[e].to;
        continue;
      }
      if (path.empty()) return 0;
      levels_[at] = -1;  // leads nowhere
      at = edges_[path.back() ^ 1].to;
      path.pop_back();
    }
    for (int e : path) limit = std::min(limit, edges_[e].capacity);
    for (int e : path) {
      edges_[e].capacity -= limit;
      edges_[e ^ 1].capacity += limit;
    }
    return limit;
  }

  std::vector<int> first_, next_, levels_;
  std::vector<Edge> edges_;
};

// Only what the device alone can do stays there in any case: loops and branches, calls of the application,
// and whatever depends on numbers that are found while the model runs.
bool may_move(const Graph& graph, const Node& node) {
  if (gives_token(node.op) || node.op == OpKind::k_result) return false;
  for (const Symbol& s : symbols_of(graph, node))
    if (s.runtime) return false;
  for (const Graph::SymbolSource& source : graph.symbol_sources)
    if (source.value == node.output) return false;
  return true;
}

// By the model's name of the node, or of its value where it has none.
bool names(const PlaceRule& rule, const Graph& graph, const Node& node) {
  const std::string& name = node.location.node.empty() ? graph.values[node.output].name : node.location.node;
  return fnmatch(rule.pattern.c_str(), name.c_str(), 0) == 0;
}

// The last rule that names the node; null where none does.
const PlaceRule* rule_for(const Graph& graph, const Node& node, const std::vector<PlaceRule>& rules) {
  const PlaceRule* found = nullptr;
  for (const PlaceRule& rule : rules)
    if (names(rule, graph, node)) found = &rule;
  return found;
}

std::vector<char> cheapest(const Graph& graph, const Target& target, const std::vector<PlaceRule>& rules) {
  // Vertices: the GPU, the companion CPU, nodes, then two for each value.
  int nodes = static_cast<int>(graph.nodes.size()), values = static_cast<int>(graph.values.size());
  constexpr int kDevice = 0, kCompanion = 1, kFirst = 2;
  Cut cut(static_cast<size_t>(kFirst + nodes + 2 * values));
  Speed device = speed_of(target), companion = speed_of(*target.companion);
  auto producer = [&](ValueId v) {
    return graph.values[v].node < 0 ? kCompanion : kFirst + graph.values[v].node;
  };
  std::vector<std::vector<int>> users(graph.values.size());
  for (int n = 0; n < nodes; ++n) {
    const Node& node = graph.nodes[n];
    const PlaceRule* rule = rule_for(graph, node, rules);
    bool moves = may_move(graph, node);
    // What is cut is paid: an edge from the GPU is paid by nodes on the companion.
    bool only_device = !moves || (rule && !rule->on_companion);
    cut.add(kDevice, kFirst + n, only_device ? Cut::kUnlimited : time_of(graph, node, companion));
    cut.add(kFirst + n, kCompanion,
            rule && rule->on_companion && moves ? Cut::kUnlimited : time_of(graph, node, device));
    for (ValueId v : node.inputs) users[v].push_back(kFirst + n);
  }
  for (const Graph::Output& output : graph.outputs)
    if (graph.values[output.value].node >= 0) users[output.value].push_back(kCompanion);
  for (int v = 0; v < values; ++v) {
    const Node* from = graph.def(v);
    if (from && (from->op == OpKind::k_constant || from->op == OpKind::k_dims)) continue;
    if (users[v].empty() || (from && gives_token(from->op))) continue;
    // A value that the other side computed: waiting for it, and its way.
    double crossing =
        (target.transfer_seconds + bytes(graph, v) / target.transfer_bytes_per_second) / kNanosecond;
    int to_companion = kFirst + nodes + 2 * v, to_device = to_companion + 1;
    cut.add(producer(v), to_companion, crossing);
    cut.add(to_device, producer(v), crossing);
    for (int user : users[v]) {
      cut.add(to_companion, user, Cut::kUnlimited);
      cut.add(user, to_device, Cut::kUnlimited);
    }
  }
  std::vector<char> device_side = cut.source_side(kDevice, kCompanion);
  std::vector<char> on_companion(graph.nodes.size());
  for (int n = 0; n < nodes; ++n) on_companion[n] = !device_side[kFirst + n];
  return on_companion;
}

}  // namespace

bool names_a_node(const PlaceRule& rule, const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return names(rule, graph, node); });
}

Expected<Graph> place_nodes(const Graph& graph, const Target& target, const std::vector<PlaceRule>& rules) {
  if (!target.companion) return graph;
  QUERNEL_TRY(Graph live, eliminate_dead_nodes(graph));
  std::vector<char> on_companion = cheapest(live, target, rules);
  bool any = false;
  for (size_t n = 0; n < on_companion.size(); ++n) {
    const Node& node = live.nodes[n];
    const PlaceRule* rule = rule_for(live, node, rules);
    if (rule && rule->on_companion && !may_move(live, node))
      return unsupported(
          "--place cpu:" + rule->pattern +
              ": expected a node that can run beside the GPU, found a loop, a branch, a custom "
              "op or one whose size is found while the model runs",
          node.location, "leave it out of the pattern");
    any |= on_companion[n] && node.op != OpKind::k_constant && node.op != OpKind::k_dims;
  }
  return any ? move_to_companion(live, on_companion) : live;
}

}  // namespace quernel::schedule
