#include "frontends/onnx/sort_nodes.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace quernel::onnx_import {
namespace {

// Names a node reads: its inputs, and what its subgraphs take from outside.
void collect_reads(const onnx::NodeProto& node, std::vector<std::string>& reads, int depth = 0);

void collect_reads(const onnx::GraphProto& graph, std::vector<std::string>& reads, int depth) {
  std::unordered_set<std::string> local;
  for (const auto& input : graph.input()) local.insert(input.name());
  for (const auto& tensor : graph.initializer()) local.insert(tensor.name());
  for (const auto& node : graph.node())
    for (const auto& name : node.output()) local.insert(name);
  std::vector<std::string> inner;
  for (const auto& node : graph.node()) collect_reads(node, inner, depth + 1);
  for (const auto& output : graph.output()) inner.push_back(output.name());
  for (auto& name : inner)
    if (!local.count(name)) reads.push_back(std::move(name));
}

void collect_reads(const onnx::NodeProto& node, std::vector<std::string>& reads, int depth) {
  for (const auto& name : node.input())
    if (!name.empty()) reads.push_back(name);
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) collect_reads(attribute.g(), reads, depth);
    for (const auto& graph : attribute.graphs()) collect_reads(graph, reads, depth);
  }
}

// Nodes of one cycle among those that are left: follow unfinished producers until one repeats.
std::string describe_cycle(const std::vector<const onnx::NodeProto*>& nodes,
                           const std::vector<std::vector<int>>& producers, const std::vector<int>& waiting) {
  int start = 0;
  while (waiting[start] == 0) ++start;
  std::vector<int> path;
  std::unordered_map<int, size_t> seen;
  int node = start;
  while (!seen.count(node)) {
    seen[node] = path.size();
    path.push_back(node);
    for (int producer : producers[node])
      if (waiting[producer] > 0) {
        node = producer;
        break;
      }
  }
  path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(seen[node]));
  std::reverse(path.begin(), path.end());
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(path.size(), kShown); ++i)
    text += (i ? " -> '" : "'") + node_name(*nodes[path[i]]) + "' (" + operator_name(*nodes[path[i]]) + ")";
  if (path.size() > kShown) text += " -> ... " + std::to_string(path.size()) + " nodes in all";
  return text;
}

}  // namespace

std::string_view normal_domain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

std::string node_name(const onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const auto& name : node.output())
    if (!name.empty()) return name;
  return "unnamed";
}

std::string operator_name(const onnx::NodeProto& node) {
  std::string domain(normal_domain(node.domain()));
  return domain.empty() ? node.op_type() : domain + "." + node.op_type();
}

Expected<std::vector<const onnx::NodeProto*>> sort_nodes(
    const std::vector<const onnx::NodeProto*>& nodes, const std::string& file_name,
    const std::function<bool(const std::string&)>& is_defined,
    const std::function<bool(const onnx::NodeProto&, int)>& is_dropped) {
  Diagnostics errors;
  int count = static_cast<int>(nodes.size());
  auto place = [&](int i) { return Location{file_name, node_name(*nodes[i]), operator_name(*nodes[i])}; };
  std::unordered_map<std::string, int> producer_of;
  for (int i = 0; i < count; ++i)
    for (int k = 0; k < nodes[i]->output_size(); ++k)
      if (!nodes[i]->output(k).empty() && !is_dropped(*nodes[i], k))
        producer_of.emplace(nodes[i]->output(k), i);

  std::vector<std::vector<int>> producers(nodes.size()), consumers(nodes.size());
  std::vector<int> waiting(nodes.size(), 0);  // producers that have not been placed
  for (int i = 0; i < count; ++i) {
    std::vector<std::string> reads;
    collect_reads(*nodes[i], reads);
    for (const std::string& name : reads) {
      auto it = producer_of.find(name);
      if (it == producer_of.end()) {
        if (!is_defined(name))
          errors.push_back(invalid_input(
              "input '" + name + "' is produced by no node, and is neither an input nor an initializer",
              place(i)));
        continue;
      }
      producers[i].push_back(it->second);
      consumers[it->second].push_back(i);
      ++waiting[i];
    }
  }
  if (!errors.empty()) return errors;

  std::vector<const onnx::NodeProto*> order;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (int i = 0; i < count; ++i)
    if (waiting[i] == 0) ready.push(i);
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    order.push_back(nodes[i]);
    for (int consumer : consumers[i])
      if (--waiting[consumer] == 0) ready.push(consumer);
  }
  if (order.size() != nodes.size())
    return invalid_input("the graph has a cycle: " + describe_cycle(nodes, producers, waiting),
                         Location{file_name}, "a node must not depend on its own result");
  return order;
}

}  // namespace quernel::onnx_import
