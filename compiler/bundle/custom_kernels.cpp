#include "bundle/custom_kernels.h"

#include <algorithm>

#include "graph/control.h"
#include "support/file.h"

namespace quernel::bundle {
namespace {

// Whether a graph has custom ops of that name.
bool uses_custom_op(const std::vector<Graph>& graphs, const std::string& name) {
  auto is_it = [&](const Node& node) {
    return node.op == OpKind::k_custom && node.attributes.custom->name == name;
  };
  return std::any_of(graphs.begin(), graphs.end(),
                     [&](const Graph& graph) { return any_node(graph, is_it); });
}

// The kernel that needs most of what the target has; null where none runs on it.
Expected<const CustomKernel*> choose_kernel(const CustomOpDescription& op, const Target& target) {
  const CustomKernel* best = nullptr;
  uint64_t best_features = 0;
  for (const CustomKernel& kernel : op.kernels) {
    QUERNEL_TRY(Target facts, find_target(kernel.target));
    uint64_t needs = facts.required_features;
    if (!runs_code_of(target, facts)) continue;
    if (!best || needs > best_features) best = &kernel, best_features = needs;
  }
  return best;
}

}  // namespace

Expected<std::vector<codegen::PrebuiltKernel>> read_custom_kernels(
    const std::vector<Graph>& graphs, const Target& target, const std::vector<CustomOpDescription>& ops) {
  std::vector<codegen::PrebuiltKernel> kernels;
  for (const CustomOpDescription& op : ops) {
    QUERNEL_TRY(const CustomKernel* kernel, choose_kernel(op, target));
    if (!kernel || !uses_custom_op(graphs, op.name)) continue;
    std::string reason;
    std::optional<std::string> object = read_file(kernel->object, &reason);
    if (!object)
      return invalid_input("kernel of custom op '" + op.name + "': cannot read the object file: " + reason,
                           Location{kernel->object, {}, {}, 0});
    kernels.push_back({op.name, kernel->symbol, kernel->object, std::move(*object)});
  }
  return kernels;
}

Expected<std::vector<std::string>> missing_custom_kernels(const std::vector<Graph>& graphs,
                                                          const Target& target,
                                                          const std::vector<CustomOpDescription>& ops) {
  std::vector<std::string> notes;
  for (const CustomOpDescription& op : ops) {
    QUERNEL_TRY(const CustomKernel* kernel, choose_kernel(op, target));
    if (!kernel && !op.kernels.empty() && uses_custom_op(graphs, op.name))
      notes.push_back("custom op '" + op.name + "' has no kernel for target " + target.name +
                      ": the application gives its function");
  }
  return notes;
}

}  // namespace quernel::bundle
