// Inputs and outputs of other dtypes: what QuantizeLinear and DequantizeLinear next to them say.
#include <cmath>

#include "graph/io_types.h"
#include "run_model.h"

namespace quernel::onnx_test {
namespace {

constexpr int kInt8 = 3;

// The maximum of x and 1; `real`: between quantizations and dequantizations, else with integers outside.
ModelBuilder maximum(bool real) {
  ModelBuilder m;
  m.input("x", {-1, 2}, real ? kFloat : kInt8, {"n", ""}).output("y");
  m.floats("scale", {}, {0.5}), m.floats("one", {}, {1});
  onnx::TensorProto& zero = *m.graph().add_initializer();
  zero.set_name("zero"), zero.set_data_type(kInt8), zero.add_int32_data(-3);
  if (real) m.node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  m.node("DequantizeLinear", {real ? "q" : "x", "scale", "zero"}, {"d"});
  m.node("Max", {"d", "one"}, {"r"});
  m.node("QuantizeLinear", {"r", "scale", "zero"}, {real ? "s" : "y"});
  if (real) m.node("DequantizeLinear", {"s", "scale", "zero"}, {"y"});
  return m;
}

void expect_same_with(IoTypes types, const Tensor& x) {
  bool to_real = types == IoTypes::kReal;
  Expected<ImportedModel> imported = maximum(!to_real).import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  IoScales scales = imported->scales;
  EXPECT_EQ(scales.inputs.size(), to_real ? 1u : 0u);
  std::vector<std::string> notes;
  Expected<Graph> graph = set_io_types(imported->graph, types, scales, "test.onnx", notes);
  ASSERT_TRUE(graph) << to_string(graph.errors());
  EXPECT_TRUE(notes.empty());
  if (Status ok = verify(*graph); !ok) ADD_FAILURE() << to_string(ok.errors());
  if (!to_real) {
    EXPECT_EQ(scales.inputs.at("x"), (IntegerScale{0.5, -3}));
    EXPECT_EQ(scales.outputs.at("y"), (IntegerScale{0.5, -3}));
  }
  Expected<std::vector<Tensor>> found = interpret(*graph, {x});
  ASSERT_TRUE(found) << to_string(found.errors());
  Tensor expected = run(maximum(to_real), {x}).at(0);
  ASSERT_EQ(found->at(0).dtype, expected.dtype);
  ASSERT_EQ(found->at(0).dims, expected.dims);
  for (int64_t i = 0; i < expected.count(); ++i)
    EXPECT_EQ(element_as_f64(found->at(0), i), element_as_f64(expected, i)) << "element " << i;
}

TEST(IoTypes, integers_become_real) {
  expect_same_with(IoTypes::kReal, f32_tensor({4, 2}, {1.25, 1.75, -1, 5.2f, 1000, -1000, INFINITY, 63.3f}));
}

TEST(IoTypes, real_inputs_and_outputs_become_integers) {
  expect_same_with(IoTypes::kIntegers,
                   make_tensor(DType::kI8, {2, 2}, std::vector<int8_t>{-128, 127, -1, 0}));
}

TEST(IoTypes, nodes_without_outputs_say_nothing) {
  ModelBuilder m = maximum(false);
  m.node("DequantizeLinear", {"x", "scale", "zero"}, {});
  m.node("QuantizeLinear", {"one", "scale", "zero"}, {""});
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  EXPECT_EQ(imported->scales.inputs.size(), 1u);
}

TEST(IoTypes, an_input_that_others_read_is_refused) {
  ModelBuilder m = maximum(true);
  m.output("z").node("Abs", {"x"}, {"z"}, "the_abs");
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  std::vector<std::string> notes;
  Expected<Graph> graph =
      set_io_types(imported->graph, IoTypes::kIntegers, imported->scales, "test.onnx", notes);
  ASSERT_FALSE(graph);
  EXPECT_NE(
      to_string(graph.errors())
          .find("input 'x': expected only quantizations of one scale to read it, found 'the_abs' (Abs)"),
      std::string::npos)
      << to_string(graph.errors());
}

}  // namespace
}  // namespace quernel::onnx_test
