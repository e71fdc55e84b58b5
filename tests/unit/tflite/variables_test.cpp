// Variables of a model become states of the graph.
#include <gtest/gtest.h>

#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

void add_handle(ModelBuilder& m, int handle, const char* name) {
  m.node<tflite::VarHandleOptions>(Op::VAR_HANDLE, {}, {handle}, [name](Builder& f) {
    return tflite::CreateVarHandleOptions(f, 0, f.CreateString(name));
  });
}

TEST(TfliteVariables, resources_are_states) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {2}), handle = m.tensor("handle", {}, Type::RESOURCE);
  int before = m.tensor("before", {2});
  add_handle(m, handle, "total");
  m.node(Op::READ_VARIABLE, {handle}, {before});
  m.node(Op::ADD, {before, x}, {y});
  m.node(Op::ASSIGN_VARIABLE, {handle, y}, {});
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  const Graph& graph = imported->graph;
  ASSERT_EQ(graph.states.size(), 1u);
  EXPECT_EQ(graph.values[static_cast<size_t>(graph.inputs[graph.states[0].input])].name, "total");
  Expected<std::vector<Tensor>> results =
      interpret(graph, {f32_tensor({2}, {1, 2}), f32_tensor({2}, {10, 20})});
  ASSERT_TRUE(results) << to_string(results.errors());
  expect_values(*results, {2}, {11, 22});
  expect_values({(*results)[graph.states[0].output]}, {2}, {11, 22});
}

TEST(TfliteVariables, variable_tensors_are_states) {
  ModelBuilder m;
  int x = m.input("x", {1, 1}), y = m.output("y", {1, 1}), state = m.tensor("state", {1, 1});
  m.extras[state] = [](Builder&) {
    ModelBuilder::Extra extra;
    extra.is_variable = true;
    return extra;
  };
  int w = m.floats("w", {1, 1}, {1}), r = m.floats("r", {1, 1}, {2}), b = m.floats("b", {1}, {0});
  m.node(Op::RNN, {x, w, r, b, state}, {y});
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  ASSERT_EQ(imported->graph.states.size(), 1u);
  Expected<std::vector<Tensor>> results =
      interpret(imported->graph, {f32_tensor({1, 1}, {3}), f32_tensor({1, 1}, {10})});
  ASSERT_TRUE(results) << to_string(results.errors());
  expect_values(*results, {1, 1}, {23});
}

// The kernel of TensorFlow Lite takes weights of time for integers where weights of features are.
TEST(TfliteVariables, weights_of_time_without_a_scale_are_zeros_and_noted) {
  ModelBuilder m;
  int x = m.input("x", {1, 2}), y = m.output("y", {1, 1}), state = m.tensor("state", {1, 2});
  m.extras[state] = [](Builder&) {
    ModelBuilder::Extra extra;
    extra.is_variable = true;
    return extra;
  };
  int w = m.constant<int8_t>("w", {1, 2}, Type::INT8, {10, 20}, {{0.5}, {0}});
  int t = m.floats("t", {1, 2}, {1, 1}), b = m.floats("b", {1}, {7});
  m.node<tflite::SVDFOptions>(Op::SVDF, {x, w, t, b, state}, {y},
                              [](Builder& f) { return tflite::CreateSVDFOptions(f, 1); });
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  ASSERT_EQ(imported->notes.size(), 1u);
  EXPECT_EQ(imported->notes[0],
            "node 'y' (SVDF): its weights of time are floats beside weights of integers: as in TensorFlow "
            "Lite, they "
            "count as zeros");
  expect_values(m.run({f32_tensor({1, 2}, {3, 4}), f32_tensor({1, 2}, {5, 6})}), {1, 1}, {7});
}

TEST(TfliteVariables, operators_on_variables_are_checked) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {2});
  m.node(Op::READ_VARIABLE, {x}, {y});
  EXPECT_NE(m.errors().find("expected a handle of a variable of the same subgraph"), std::string::npos)
      << m.errors();

  ModelBuilder none;
  none.input("x", {2});
  int handle = none.tensor("handle", {}, Type::RESOURCE);
  none.outputs = none.inputs;
  add_handle(none, handle, "v");
  none.node(Op::READ_VARIABLE, {handle}, {});
  EXPECT_NE(none.errors().find("expected one result of a variable's handle"), std::string::npos)
      << none.errors();

  ModelBuilder assign;
  assign.input("x", {2});
  handle = assign.tensor("handle", {}, Type::RESOURCE);
  assign.outputs = assign.inputs;
  add_handle(assign, handle, "v");
  assign.node(Op::ASSIGN_VARIABLE, {handle}, {});
  EXPECT_NE(assign.errors().find("expected a handle and a value"), std::string::npos) << assign.errors();
}

TEST(TfliteVariables, values_keep_their_type) {
  ModelBuilder m;
  int x = m.input("x", {2}), y = m.output("y", {1}), handle = m.tensor("handle", {}, Type::RESOURCE);
  add_handle(m, handle, "v");
  m.node(Op::READ_VARIABLE, {handle}, {y});
  m.node(Op::ASSIGN_VARIABLE, {handle, x}, {});
  EXPECT_NE(m.errors().find("variable 'v': expected values of one fixed type, found f32[1] and f32[2]"),
            std::string::npos)
      << m.errors();
}

}  // namespace
}  // namespace quernel::tflite_test
