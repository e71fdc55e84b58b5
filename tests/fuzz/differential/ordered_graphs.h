// Inputs of scans, sorts and scatters.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir.h"
#include "random_graph/random_graph.h"

namespace quernel::testing {

// Small integers, so that there are equal elements and sums are exact; indices some of which are out of
// range.
inline std::vector<Tensor> inputs_of(const Graph& graph, int64_t largest_index, int64_t n,
                                     bool has_nan = true) {
  Random random(3);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs) {
    Shape shape = graph.shape(v);
    for (Dim& d : shape) d = d.substitute(std::map<std::string, int64_t>{{"n", n}});
    Tensor tensor = random_tensor(graph.dtype(v), static_dims(shape), random);
    std::vector<uint8_t> bytes(tensor.bytes.data(), tensor.bytes.data() + tensor.bytes.size());
    for (int64_t i = 0; i < tensor.count(); ++i) {
      if (graph.dtype(v) == DType::kI64)
        store_i64(DType::kI64, bytes.data(), i, random.between(-largest_index, largest_index));
      else if (is_float(graph.dtype(v)))
        store_f64(graph.dtype(v), bytes.data(), i,
                  has_nan && random.chance(1) ? NAN : static_cast<double>(random.between(-500, 500)));
    }
    tensor.bytes = Bytes::own(std::move(bytes));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

}  // namespace quernel::testing
