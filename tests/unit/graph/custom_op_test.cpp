// Descriptions of custom ops: what they say, and how shapes of results follow from those of operands.
#include "graph/custom_op.h"

#include <gtest/gtest.h>

namespace quernel {
namespace {

CustomOpDescription description(const std::string& text) {
  Expected<std::vector<CustomOpDescription>> ops = parse_custom_ops(text, "folder/ops.op");
  if (!ops || ops->size() != 1) throw std::runtime_error(ops ? "not one" : to_string(ops.errors()));
  return std::move((*ops)[0]);
}

std::string error_of(const std::string& text) {
  Expected<std::vector<CustomOpDescription>> ops = parse_custom_ops(text, "ops.op");
  return ops ? "no error" : ops.errors()[0].message;
}

std::string results(const CustomOpDescription& op, const std::vector<TensorType>& operands) {
  Expected<std::vector<TensorType>> types = custom_result_types(op, operands);
  if (!types) return types.errors()[0].message;
  std::string text;
  for (const TensorType& type : *types) text += (text.empty() ? "" : " ") + to_string(type);
  return text;
}

TEST(CustomOp, a_description_names_types_and_kernels) {
  CustomOpDescription op = description(R"(// Products.
op "demo::Pair" (x: f32[rows, n], "the w": i8[n, 4], s: bool[]) -> (y: f32[rows, 4], "z.1": i64[(n floordiv 2), min(n, 8)])
  kernel "x86-64" "pair.o" symbol "pair"
  kernel "x86-64-v3" "/v3/pair.o" symbol "pair_v3"
)");
  EXPECT_EQ(op.name, "demo::Pair");
  ASSERT_EQ(op.inputs.size(), 3u);
  EXPECT_EQ(op.inputs[1].name, "the w");
  EXPECT_EQ(to_string(op.inputs[0].type), "f32[rows,n]");
  EXPECT_EQ(to_string(op.inputs[2].type), "bool[]");
  ASSERT_EQ(op.outputs.size(), 2u);
  ASSERT_EQ(op.kernels.size(), 2u);
  EXPECT_EQ(op.kernels[0].target, "x86-64");
  EXPECT_EQ(op.kernels[0].object, "folder/pair.o");
  EXPECT_EQ(op.kernels[1].object, "/v3/pair.o");
  EXPECT_EQ(op.kernels[1].symbol, "pair_v3");
  EXPECT_EQ(results(op, {{DType::kF32, {2, 9}}, {DType::kI8, {9, 4}}, {DType::kBool, {}}}),
            "f32[2,4] i64[4,8]");
  Dim batch = Dim::symbol("batch"), width = Dim::symbol("width") * 2;
  EXPECT_EQ(results(op, {{DType::kF32, {batch, width}}, {DType::kI8, {width, 4}}, {DType::kBool, {}}}),
            "f32[batch,4] i64[width,min((width * 2), 8)]");
}

TEST(CustomOp, operands_must_fit) {
  CustomOpDescription op = description("op \"Pair\" (x: f32[r, n], w: f32[n, 4]) -> (y: f32[(r - 3)])");
  EXPECT_EQ(results(op, {{DType::kF32, {5, 2}}}), "custom op 'Pair': expected 2 inputs, found 1");
  EXPECT_EQ(results(op, {{DType::kF16, {5, 2}}, {DType::kF32, {2, 4}}}),
            "input 'x' of custom op 'Pair': expected f32[r,n], found f16[5,2]");
  EXPECT_EQ(results(op, {{DType::kF32, {5, 2}}, {DType::kF32, {2}}}),
            "input 'w' of custom op 'Pair': expected f32[n,4], found f32[2]");
  EXPECT_EQ(results(op, {{DType::kF32, {5, 2}}, {DType::kF32, {3, 4}}}),
            "input 'w' of custom op 'Pair': expected f32[n,4] with dim 0 = 2, found f32[3,4]");
  EXPECT_EQ(results(op, {{DType::kF32, {5, 2}}, {DType::kF32, {2, 5}}}),
            "input 'w' of custom op 'Pair': expected f32[n,4] with dim 1 = 4, found f32[2,5]");
  EXPECT_EQ(results(op, {{DType::kF32, {2, 2}}, {DType::kF32, {2, 4}}}),
            "output 'y' of custom op 'Pair': expected a dim of at least 0, found (r - 3) = -1");
  int heard = 0;
  Expected<std::vector<TensorType>> types = custom_result_types(
      op, {{DType::kF32, {5, Dim::symbol("a")}}, {DType::kF32, {Dim::symbol("b"), 4}}},
      [&](const Dim& a, const Dim& b) { heard += to_string(a) == "a" && to_string(b) == "b"; });
  EXPECT_FALSE(types);
  EXPECT_EQ(heard, 1);
}

TEST(CustomOp, descriptions_that_cannot_be_read) {
  EXPECT_EQ(error_of("Pair (x: f32[])"), "expected 'op', found 'Pair'");
  EXPECT_EQ(error_of("op Pair (x: f32[]) -> (y: f32[])"), "expected a quoted name, found 'Pair'");
  EXPECT_EQ(error_of("op \"\" (x: f32[]) -> (y: f32[])"),
            "expected the name of an operator, found an empty one");
  EXPECT_EQ(error_of("op \"P\" (x: f32[]) -> ()"), "op 'P': expected at least one output");
  EXPECT_EQ(error_of("op \"P\" (x: f32[n]) -> (y: f32[m])"), "'m' is a dim of none of the inputs");
  EXPECT_EQ(error_of("op \"P\" (x: f32[(n * 2)]) -> (y: f32[n])"),
            "expected a number or a name as a dim of an input, found (n * 2)");
  EXPECT_EQ(error_of("op \"P\" (x: f32[n, m]) -> (y: f32[(n mod m)])"),
            "expected a number as a divisor, found (n mod m)");
  EXPECT_EQ(error_of("op \"P\" () -> (y: f32[]) op \"P\" () -> (y: f32[])"), "op 'P' is described twice");
  EXPECT_EQ(error_of("op \"P\" () -> (y: f32[]) kernel \"x86-64\" \"p.o\""),
            "expected 'symbol', found the end of the text");
  Expected<std::vector<CustomOpDescription>> missing = read_custom_ops("/nonexistent/ops.op");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.errors()[0].message,
            "cannot read the description of custom ops: No such file or directory");
}

}  // namespace
}  // namespace quernel
