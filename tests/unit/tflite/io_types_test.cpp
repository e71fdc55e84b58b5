// Models whose inputs and outputs get other dtypes compute what the same model made with these dtypes computes.
#include <gtest/gtest.h>

#include <cmath>

#include "graph/io_types.h"
#include "model_builder.h"

namespace quernel::tflite_test {
namespace {

const Quant kIn{{0.5}, {1}}, kOut{{1.0f / 256}, {-128}};

// LOGISTIC of integers; `real`: between QUANTIZE and DEQUANTIZE.
ModelBuilder logistic(bool real) {
  ModelBuilder m;
  std::vector<int32_t> dims{-1, 2};
  int x = real ? m.tensor("q", dims, Type::INT8, kIn) : m.input("x", dims, Type::INT8, kIn);
  int y = real ? m.tensor("r", dims, Type::INT8, kOut) : m.output("y", dims, Type::INT8, kOut);
  if (real) m.node(Op::QUANTIZE, {m.input("x", dims)}, {x});
  m.node(Op::LOGISTIC, {x}, {y});
  if (real) m.node(Op::DEQUANTIZE, {y}, {m.output("y", dims)});
  return m;
}

struct Changed {
  Graph graph;
  IoScales scales;
  std::vector<std::string> notes;
  std::string errors;
};

Changed change(const ModelBuilder& m, IoTypes types, const ImportOptions& options = {}) {
  Expected<ImportedModel> imported = m.import(options);
  if (!imported) {
    ADD_FAILURE() << to_string(imported.errors());
    return {};
  }
  Changed changed{{}, std::move(imported->scales), {}, {}};
  Expected<Graph> graph = set_io_types(imported->graph, types, changed.scales, "test.tflite", changed.notes);
  if (!graph) {
    changed.errors = to_string(graph.errors());
    return changed;
  }
  if (Status ok = verify(*graph); !ok) ADD_FAILURE() << to_string(ok.errors());
  changed.graph = std::move(*graph);
  return changed;
}

void expect_same(const Graph& graph, const Tensor& input, const std::vector<Tensor>& expected) {
  Expected<std::vector<Tensor>> found = interpret(graph, {input});
  ASSERT_TRUE(found) << to_string(found.errors());
  ASSERT_EQ(found->size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ((*found)[i].dtype, expected[i].dtype);
    ASSERT_EQ((*found)[i].dims, expected[i].dims);
    for (int64_t k = 0; k < expected[i].count(); ++k)
      EXPECT_EQ(element_as_f64((*found)[i], k), element_as_f64(expected[i], k)) << "element " << k;
  }
}

TEST(IoTypes, integers_become_real) {
  // Halves, what saturates, what is no number.
  Tensor x = f32_tensor({5, 2}, {0.25, -0.25, 0.24999999f, 0.75, -1000, 1000, 62.9f, -64, INFINITY, NAN});
  for (IntegerRounding rounding : kIntegerRoundings) {
    ImportOptions options;
    options.rounding = rounding;
    Changed changed = change(logistic(false), IoTypes::kReal, options);
    EXPECT_EQ(changed.graph.type(changed.graph.inputs[0]).dtype, DType::kF32);
    EXPECT_EQ(changed.graph.symbols.size(), 1u);
    EXPECT_TRUE(changed.scales.inputs.empty() && changed.scales.outputs.empty() && changed.notes.empty());
    expect_same(changed.graph, x, logistic(true).run({x}, options));
  }
}

TEST(IoTypes, real_inputs_and_outputs_become_integers) {
  Tensor x = i8_tensor({2, 2}, {-128, 127, 1, 2});
  Changed changed = change(logistic(true), IoTypes::kIntegers);
  ASSERT_EQ(changed.errors, "");
  EXPECT_EQ(changed.graph.nodes.size(), logistic(false).import()->graph.nodes.size());
  EXPECT_EQ(changed.scales.inputs.at("x"), (IntegerScale{0.5, 1}));
  EXPECT_EQ(changed.scales.outputs.at("y"), (IntegerScale{1.0f / 256, -128}));
  expect_same(changed.graph, x, logistic(false).run({x}));
}

TEST(IoTypes, moved_elements_are_moved_integers) {
  ModelBuilder real = logistic(true), integers = logistic(false);
  for (ModelBuilder* m : {&real, &integers}) {
    bool is_real = m == &real;
    Type type = is_real ? Type::FLOAT32 : Type::INT8;
    Quant q = is_real ? Quant{} : kIn, out = is_real ? Quant{} : kOut;
    *m = {};
    int x = m->input("x", {2, 3}, type, q), t = m->tensor("t", {3, 2}, type, q);
    m->node(Op::TRANSPOSE, {x, m->ints("perm", {1, 0})}, {t});
    int from = t, to = m->tensor("r", {3, 2}, Type::INT8, kOut);
    if (is_real) m->node(Op::QUANTIZE, {t}, {from = m->tensor("q", {3, 2}, Type::INT8, kIn)});
    m->node(Op::LOGISTIC, {from}, {to});
    if (is_real) {
      int dequantized = m->tensor("d", {3, 2});
      m->node(Op::DEQUANTIZE, {to}, {dequantized});
      to = dequantized;
    }
    m->node(Op::RESHAPE, {to, m->ints("shape", {6})}, {m->output("y", {6}, type, out)});
  }
  Tensor x = i8_tensor({2, 3}, {1, 2, 3, 40, 50, 60});
  Changed changed = change(real, IoTypes::kIntegers);
  ASSERT_EQ(changed.errors, "");
  expect_same(changed.graph, x, integers.run({x}));
}

TEST(IoTypes, an_input_that_others_read_is_refused) {
  ModelBuilder m = logistic(true);
  m.node(Op::ABS, {m.inputs[0]}, {m.output("z", {-1, 2})});
  std::string errors = change(m, IoTypes::kIntegers).errors;
  EXPECT_NE(
      errors.find("--io i8: input 'x': expected only quantizations of one scale to read it, found 'z' (ABS)"),
      std::string::npos)
      << errors;
  EXPECT_NE(errors.find("--io i8: output 'z': expected a dequantization of one scale, found 'z' (ABS)"),
            std::string::npos)
      << errors;
  ModelBuilder two = logistic(true);
  two.node(Op::QUANTIZE, {two.inputs[0]}, {two.output("z", {-1, 2}, Type::INT8, {{0.25}, {1}})});
  errors = change(two, IoTypes::kIntegers).errors;
  EXPECT_NE(errors.find("read it, found 'z' (QUANTIZE)"), std::string::npos) << errors;
  ModelBuilder through = logistic(true);
  through.outputs.push_back(through.inputs[0]);
  errors = change(through, IoTypes::kIntegers).errors;
  EXPECT_NE(errors.find("read it, found an output"), std::string::npos) << errors;
  EXPECT_NE(errors.find("dequantization of one scale, found an input"), std::string::npos) << errors;
}

TEST(IoTypes, equal_quantizations_of_an_input_are_one) {
  ModelBuilder m = logistic(true);
  m.node(Op::QUANTIZE, {m.inputs[0]}, {m.output("z", {-1, 2}, Type::INT8, kIn)});
  Changed changed = change(m, IoTypes::kIntegers);
  ASSERT_EQ(changed.errors, "");
  Tensor x = i8_tensor({1, 2}, {5, 6});
  std::vector<Tensor> expected = logistic(false).run({x});
  expected.push_back(x);
  expect_same(changed.graph, x, expected);
}

TEST(IoTypes, integers_without_a_scale_stay) {
  ModelBuilder m;
  m.node(Op::ABS, {m.input("x", {2})}, {m.output("y", {2})});
  m.outputs.push_back(m.input("mask", {2}, Type::UINT8));
  m.outputs.push_back(m.input("ids", {2}, Type::INT32));
  Changed changed = change(m, IoTypes::kReal);
  EXPECT_EQ(changed.notes,
            (std::vector<std::string>{"--io f32: input 'mask' stays u8: the model says no scale of it",
                                      "--io f32: output 'mask' stays u8: the model says no scale of it",
                                      "--io changes nothing: no input or output has a scale"}));
}

TEST(IoTypes, states_stay) {
  ModelBuilder m;
  int x = m.input("x", {2}, Type::INT8, kIn), y = m.output("y", {2}, Type::INT8, kIn);
  int handle = m.tensor("handle", {}, Type::RESOURCE), before = m.tensor("before", {2}, Type::INT8, kIn);
  m.node<tflite::VarHandleOptions>(Op::VAR_HANDLE, {}, {handle}, [](flatbuffers::FlatBufferBuilder& f) {
    return tflite::CreateVarHandleOptions(f, 0, f.CreateString("last"));
  });
  m.node(Op::READ_VARIABLE, {handle}, {before});
  m.node(Op::MAXIMUM, {before, x}, {y});
  m.node(Op::ASSIGN_VARIABLE, {handle, y}, {});
  Changed changed = change(m, IoTypes::kReal);
  ASSERT_EQ(changed.graph.states.size(), 1u);
  const Graph::State& state = changed.graph.states[0];
  EXPECT_EQ(changed.graph.dtype(changed.graph.inputs[state.input]), DType::kI8);
  EXPECT_EQ(changed.graph.dtype(changed.graph.outputs[state.output].value), DType::kI8);
  Expected<std::vector<Tensor>> results =
      interpret(changed.graph, {f32_tensor({2}, {1, -3}), i8_tensor({2}, {2, 2})});
  ASSERT_TRUE(results) << to_string(results.errors());
  expect_values(*results, {2}, {1, 0.5});
}

}  // namespace
}  // namespace quernel::tflite_test
