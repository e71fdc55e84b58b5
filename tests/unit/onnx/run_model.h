// Imports a model made in memory, checks the graph and interprets it.
#pragma once

#include <gtest/gtest.h>

#include "graph/interpret.h"
#include "graph/verify.h"
#include "model_builder.h"

namespace quernel::onnx_test {

inline std::vector<Tensor> run(const ModelBuilder& m, const std::vector<Tensor>& inputs,
                               const ImportOptions& options = {}) {
  Expected<ImportedModel> imported = m.import(options);
  if (!imported) {
    ADD_FAILURE() << to_string(imported.errors());
    return {};
  }
  if (Status ok = verify(imported->graph); !ok) ADD_FAILURE() << to_string(ok.errors());
  Expected<std::vector<Tensor>> outputs = interpret(imported->graph, inputs);
  if (!outputs) {
    ADD_FAILURE() << to_string(outputs.errors());
    return {};
  }
  return *outputs;
}

inline void expect_values(const Tensor& tensor, const std::vector<int64_t>& dims,
                          const std::vector<double>& values, double tolerance = 1e-5) {
  EXPECT_EQ(tensor.dims, dims);
  ASSERT_EQ(static_cast<size_t>(tensor.count()), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(element_as_f64(tensor, static_cast<int64_t>(i)), values[i], tolerance) << "element " << i;
}

}  // namespace quernel::onnx_test
