#include "diverging_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/interpret.h"
#include "input_values.h"
#include "pipeline/pipeline.h"
#include "tensor_file_compare.h"

namespace quernel::tools {
namespace {

using tensor_file::HostTensor;

// Of one layer on given operands: rounding of sums, and other orders of adding.
constexpr double kRelative = 1e-3, kShareOfLargest = 1e-4;

// Ops whose result the interpreter gives from operands alone.
bool is_checked(const Node& node) {
  return !is_control(node.op) && !gives_token(node.op) && node.op != OpKind::k_result &&
         node.op != OpKind::k_constant;
}

// One of more dims than a runtime's tensors have, as one dim.
HostTensor to_host(const Tensor& tensor) {
  HostTensor host;
  host.dtype = static_cast<qnl_dtype>(tensor.dtype);
  host.shape = tensor.dims;
  if (host.shape.size() > QNL_MAX_RANK) host.shape = {tensor.count()};
  const auto* data = reinterpret_cast<const std::byte*>(tensor.bytes.data());
  host.bytes.assign(data, data + tensor.bytes.size());
  return host;
}

std::string output_name(ValueId v) { return fmt::format("value {}", v); }

// Every layer's result becomes an output; one of more dims than a runtime's tensors have, as one dim.
Status store_results(Graph& graph) {
  graph.outputs.clear();
  const size_t count = graph.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    if (!is_checked(graph.nodes[i])) continue;
    ValueId v = graph.nodes[i].output, stored = v;
    if (graph.shape(v).size() > QNL_MAX_RANK) {
      Attributes flat;
      flat.shape = {element_count(graph.shape(v))};
      QUERNEL_TRY(stored, graph.add(OpKind::k_reshape, {v}, std::move(flat)));
    }
    graph.outputs.push_back({output_name(v), stored});
  }
  return {};
}

// Values by number, as far as they are known: inputs, constants, what the device gave.
std::map<ValueId, Tensor> known_values(const Graph& graph, const std::vector<HostTensor>& inputs,
                                       const std::vector<HostTensor>& outputs) {
  std::map<ValueId, Tensor> values;
  for (ValueId v : graph.inputs)
    for (const HostTensor& input : inputs)
      if (input.name == graph.values[v].name) values[v] = to_tensor(input);
  for (const Node& node : graph.nodes) {
    if (const Tensor* constant = graph.constant(node.output)) values[node.output] = *constant;
    for (const HostTensor& output : outputs) {
      if (output.name != output_name(node.output)) continue;
      Tensor& value = values[node.output] = to_tensor(output);
      value.dims = static_dims(graph.shape(node.output));
    }
  }
  return values;
}

Expected<DivergingLayer> first_wrong(const Graph& graph, const std::map<ValueId, Tensor>& values) {
  std::set<std::string> checked;
  for (const Node& node : graph.nodes) {
    auto found = values.find(node.output);
    if (!is_checked(node) || found == values.end()) continue;
    std::vector<const Tensor*> operands;
    for (ValueId v : node.inputs)
      if (auto it = values.find(v); it != values.end()) operands.push_back(&it->second);
    if (operands.size() != node.inputs.size()) continue;
    QUERNEL_TRY(Tensor expected, interpret_node(graph, node, operands));
    const std::string& name =
        node.location.node.empty() ? graph.values[node.output].name : node.location.node;
    checked.insert(name);
    HostTensor right = to_host(expected);
    tensor_file::Tolerance tolerance;
    tolerance.rtol = kRelative;
    tolerance.atol = kShareOfLargest * tensor_file::largest_of(right);
    if (auto message = compare(right, to_host(found->second), tolerance)) {
      return DivergingLayer{true, name,
                            node.location.op.empty() ? std::string(to_string(node.op)) : node.location.op,
                            *message};
    }
  }
  return DivergingLayer{
      false, "", "",
      fmt::format("none of {} layers is off when each stores its result: the reference data, "
                  "or what runs several layers as one",
                  checked.size())};
}

Expected<DivergingLayer> search(const std::string& model, const CompileOptions& options,
                                std::vector<HostTensor> inputs, const std::string& output,
                                const RunCompiled& run) {
  QUERNEL_TRY(Imported imported, import_model(model, options));
  Graph graph = std::move(imported.graph);
  if (!graph.symbols.empty()) return unsupported("sizes that are known during a run only");
  QUERNEL_CHECK(store_results(graph));
  QUERNEL_TRY(CompileReport report, compile_graphs({graph}, output, options));
  std::erase_if(inputs, [&](const HostTensor& input) {
    return std::none_of(graph.inputs.begin(), graph.inputs.end(),
                        [&](ValueId v) { return graph.values[v].name == input.name; });
  });
  QUERNEL_TRY(std::vector<HostTensor> outputs, run(report, inputs));
  return first_wrong(graph, known_values(graph, inputs, outputs));
}

}  // namespace

DivergingLayer find_diverging_layer(const std::string& model, const CompileOptions& options,
                                    const std::vector<HostTensor>& inputs, const std::string& output,
                                    const RunCompiled& run) {
  Expected<DivergingLayer> layer = search(model, options, inputs, output, run);
  if (layer) return *layer;
  return {false, "", "", "the layers cannot be compared: " + layer.errors()[0].message};
}

}  // namespace quernel::tools
