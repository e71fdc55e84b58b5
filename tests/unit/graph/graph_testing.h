// What the graph tests share: parsing text that must be right, running the interpreter, and comparing
// tensors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "graph/interpret.h"
#include "graph/text.h"
#include "graph/verify.h"

namespace quernel {

inline Graph graph_of(const std::string& text) {
  Expected<Graph> graph = parse_graph(text);
  if (!graph) {
    ADD_FAILURE() << to_string(graph.errors()) << text;
    return {};
  }
  Status status = verify(*graph);
  EXPECT_TRUE(status) << to_string(status.errors()) << text;
  return std::move(*graph);
}

inline std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& inputs = {}) {
  Expected<std::vector<Tensor>> outputs = interpret(graph, inputs);
  if (!outputs) {
    ADD_FAILURE() << to_string(outputs.errors());
    return std::vector<Tensor>(graph.outputs.size());
  }
  return std::move(*outputs);
}

// The first output of a graph of statements that end in "return …"; inputs as constants in the text.
inline Tensor evaluate(const std::string& statements) {
  Graph graph = graph_of("graph @test() {\n" + statements + "\n}\n");
  std::vector<Tensor> outputs = run(graph);
  return outputs.empty() ? Tensor{} : outputs[0];
}

inline std::vector<double> values(const Tensor& tensor) {
  std::vector<double> result;
  if (static_cast<int64_t>(tensor.bytes.size()) != byte_size(tensor.dtype, tensor.count())) return result;
  for (int64_t i = 0; i < tensor.count(); ++i) result.push_back(element_as_f64(tensor, i));
  return result;
}

inline testing::AssertionResult same_tensor(const Tensor& a, const Tensor& b, double tolerance = 0) {
  if (a.dtype != b.dtype || a.dims != b.dims) return testing::AssertionFailure() << "types differ";
  if (a.bytes.size() == b.bytes.size() &&
      (a.bytes.size() == 0 || std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0))
    return testing::AssertionSuccess();
  for (int64_t i = 0; i < a.count(); ++i) {
    double x = element_as_f64(a, i), y = element_as_f64(b, i);
    bool same = (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y)) ||
                std::fabs(x - y) <= tolerance * (1 + std::fabs(x));
    if (!same) return testing::AssertionFailure() << "element " << i << ": " << x << " and " << y;
  }
  return testing::AssertionSuccess();
}

}  // namespace quernel
