// The devices that every trap of tests/conformance/device is run on, and how a graph is run there.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "graph/text.h"
#include "host_targets.h"
#include "run_compiled.h"

namespace quernel::testing {

// A target of the compiler on a device of the runtime. A new device is a new entry of devices().
struct TrapDevice {
  std::string target;
  unsigned threads;
};

inline std::vector<TrapDevice> devices() {
  std::vector<TrapDevice> all;
  for (const std::string& target : host_targets())
    for (unsigned threads : {1u, 2u}) all.push_back({target, threads});
  return all;
}

inline std::string device_name(const ::testing::TestParamInfo<TrapDevice>& info) {
  std::string name = "cpu_" + info.param.target + "_" + std::to_string(info.param.threads) + "_threads";
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

// Named SeedTraps in both files that use it, so that a trap is SeedTraps.<name> whatever it needs.
class SeedTraps : public ::testing::TestWithParam<TrapDevice> {
 protected:
  static Graph graph_of(const std::string& text) {
    Expected<Graph> graph = parse_graph(text);
    if (!graph) throw std::runtime_error(to_string(graph.errors()) + text);
    return std::move(*graph);
  }

  Expected<CompiledGraph> compile(const Graph& graph) const {
    CompileOptions options;
    options.targets = {GetParam().target};
    return CompiledGraph::make(graph, options, GetParam().threads);
  }

  // The elements of all outputs, one after the other.
  std::vector<double> run(const Graph& graph, const std::vector<Tensor>& inputs) const {
    Expected<CompiledGraph> compiled = compile(graph);
    if (!compiled) throw std::runtime_error(to_string(compiled.errors()) + print(graph));
    return run(*compiled, inputs);
  }
  static std::vector<double> run(CompiledGraph& compiled, const std::vector<Tensor>& inputs) {
    Expected<std::vector<Tensor>> outputs = compiled.run(inputs);
    if (!outputs) throw std::runtime_error(to_string(outputs.errors()));
    std::vector<double> values;
    for (const Tensor& tensor : *outputs)
      for (int64_t i = 0; i < tensor.count(); ++i)
        values.push_back(is_float(tensor.dtype) ? element_as_f64(tensor, i)
                                                : static_cast<double>(element_as_i64(tensor, i)));
    return values;
  }

  // Exactly, NaN being NaN.
  static void expect_equal(const std::vector<double>& found, const std::vector<double>& wanted,
                           const std::string& what) {
    ASSERT_EQ(found.size(), wanted.size()) << what;
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(found[i] == wanted[i] || (std::isnan(found[i]) && std::isnan(wanted[i])))
          << "element " << i << ": expected " << wanted[i] << ", found " << found[i] << "\n"
          << what;
  }

  // The body of a graph whose operands are constants: run as it is, which folds them, and with its constants
  // as inputs, which computes.
  void expect(const std::string& body, const std::vector<double>& wanted) const {
    Graph folded = graph_of("graph @g() {\n" + body + "\n}"), computed;
    expect_equal(run(folded, {}), wanted, "folded: " + body);
    std::vector<Tensor> inputs;
    std::vector<ValueId> now(folded.values.size(), kNoValue);
    for (const Node& node : folded.nodes) {
      if (node.op == OpKind::k_constant) {
        const Value& value = folded.values[static_cast<size_t>(node.output)];
        now[static_cast<size_t>(node.output)] = computed.add_input(value.name, value.type);
        inputs.push_back(node.attributes.tensor);
        continue;
      }
      std::vector<ValueId> operands;
      for (ValueId v : node.inputs) operands.push_back(now[static_cast<size_t>(v)]);
      now[static_cast<size_t>(node.output)] = *computed.add(node.op, operands, node.attributes);
    }
    for (const Graph::Output& output : folded.outputs)
      computed.outputs.push_back({output.name, now[static_cast<size_t>(output.value)]});
    expect_equal(run(computed, inputs), wanted, "computed: " + body);
  }
};

inline Tensor tensor_of(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, static_cast<int64_t>(values.size()))));
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_float(dtype))
      store_f64(dtype, bytes.data(), static_cast<int64_t>(i), values[i]);
    else
      store_i64(dtype, bytes.data(), static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
  }
  return {dtype, std::move(dims), Bytes::own(std::move(bytes))};
}

}  // namespace quernel::testing
