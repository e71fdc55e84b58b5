// Sequences and optionals that are resolved while importing, forms of old opsets, and long Fourier
// transforms.
#include <cmath>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

TEST(Collections, split_rearrange_and_concatenate) {
  ModelBuilder m;
  m.input("x", {5}).output("y").output("n");
  m.ints("two", {}, {2});
  m.ints("last", {}, {-1});
  m.ints("first", {}, {0});
  m.node("SplitToSequence", {"x", "two"}, {"parts"});          // [1,2] [3,4] [5]
  m.node("SequenceAt", {"parts", "last"}, {"tail"});           // [5]
  m.node("SequenceErase", {"parts", "last"}, {"rest"});        // [1,2] [3,4]
  m.node("SequenceInsert", {"rest", "tail", "first"}, {"s"});  // [5] [1,2] [3,4]
  set_int(m.node("ConcatFromSequence", {"s"}, {"y"}), "axis", 0);
  m.node("SequenceLength", {"s"}, {"n"});
  std::vector<Tensor> y = run(m, {f32_tensor({5}, {1, 2, 3, 4, 5})});
  expect_values(y.at(0), {5}, {5, 1, 2, 3, 4});
  expect_values(y.at(1), {}, {3});
}

TEST(Collections, optionals_answer_while_importing) {
  ModelBuilder m;
  m.input("x", {1}).output("y").output("has").output("has_not");
  m.node("Optional", {"x"}, {"some"});
  attribute(m.node("Optional", {}, {"none"}), "type", onnx::AttributeProto::TYPE_PROTO);
  m.node("OptionalGetElement", {"some"}, {"y"});
  m.node("OptionalHasElement", {"some"}, {"has"});
  m.node("OptionalHasElement", {"none"}, {"has_not"});
  std::vector<Tensor> y = run(m, {f32_tensor({1}, {3})});
  expect_values(y.at(0), {1}, {3});
  expect_values(y.at(1), {}, {1});
  expect_values(y.at(2), {}, {0});
}

TEST(Collections, map_runs_its_body_per_element) {
  ModelBuilder m;
  m.input("x", {3}).input("b", {1}).output("y");
  m.node("SplitToSequence", {"x"}, {"parts"});
  onnx::NodeProto& map = m.node("SequenceMap", {"parts", "b"}, {"sums"});
  onnx::GraphProto& body = set_graph(map, "body");
  body.add_input()->set_name("part");
  body.add_input()->set_name("addend");
  body.add_output()->set_name("sum");
  onnx::NodeProto& add = *body.add_node();
  add.set_op_type("Add");
  add.add_input("part");
  add.add_input("addend");
  add.add_output("sum");
  set_int(m.node("ConcatFromSequence", {"sums"}, {"y"}), "axis", 0);
  expect_values(run(m, {f32_tensor({3}, {1, 2, 3}), f32_tensor({1}, {10})}).at(0), {3}, {11, 12, 13});
}

TEST(Collections, a_tensor_operator_refuses_a_sequence) {
  ModelBuilder m;
  m.input("x", {1}).output("y");
  m.node("SequenceConstruct", {"x"}, {"s"});
  m.node("Relu", {"s"}, {"y"});
  Expected<ImportedModel> imported = m.import();
  ASSERT_FALSE(imported);
  EXPECT_NE(to_string(imported.errors()).find("found a sequence"), std::string::npos);
}

TEST(OldOpsets, the_axis_attribute_places_the_second_operand) {
  ModelBuilder m(6);
  m.input("x", {2, 3}).output("y");
  m.floats("b", {2}, {10, 20});
  onnx::NodeProto& node = m.node("Add", {"x", "b"}, {"y"});
  set_int(node, "broadcast", 1);
  set_int(node, "axis", 0);
  expect_values(run(m, {f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6})}).at(0), {2, 3}, {11, 12, 13, 24, 25, 26});
}

TEST(OldOpsets, casts_name_their_type) {
  ModelBuilder m(5);
  m.input("x", {2}).output("y");
  set_string(m.node("Cast", {"x"}, {"y"}), "to", "INT64");
  Tensor y = run(m, {f32_tensor({2}, {1.5, -2.5})}).at(0);
  EXPECT_EQ(y.dtype, DType::kI64);
  expect_values(y, {2}, {1, -2});
}

// An impulse at 1 gives a circle; long transforms go in two steps.
TEST(Signal, long_transform_of_an_impulse) {
  for (int64_t length : {7, 512, 1024, 1500}) {
    ModelBuilder m(17);
    m.input("x", {1, length, 2}).output("y");
    m.node("DFT", {"x"}, {"y"});
    std::vector<float> x(static_cast<size_t>(2 * length));
    x[2] = 1;
    std::vector<double> expected;
    for (int64_t k = 0; k < length; ++k) {
      double angle = -2 * std::acos(-1.0) * static_cast<double>(k) / static_cast<double>(length);
      expected.push_back(std::cos(angle));
      expected.push_back(std::sin(angle));
    }
    expect_values(run(m, {f32_tensor({1, length, 2}, x)}).at(0), {1, length, 2}, expected, 1e-7);
  }
}

TEST(Signal, real_inverse_of_half_a_spectrum) {
  ModelBuilder m(20);
  m.input("x", {1, 3, 2}).output("y");
  onnx::NodeProto& node = m.node("DFT", {"x"}, {"y"});
  set_int(node, "inverse", 1);
  set_int(node, "onesided", 1);
  // The spectrum of {1, 2, 3, 4}: 10, -2+2i, -2.
  expect_values(run(m, {f32_tensor({1, 3, 2}, {10, 0, -2, 2, -2, 0})}).at(0), {1, 4, 1}, {1, 2, 3, 4});
}

TEST(Det, exchanges_rows_and_finds_singular_matrices) {
  ModelBuilder m;
  m.input("x", {2, 3, 3}).output("y");
  m.node("Det", {"x"}, {"y"});
  Tensor x = f32_tensor({2, 3, 3}, {0, 2, 0, 3, 0, 0, 0, 0, 4, 1, 2, 3, 2, 4, 6, 0, 0, 1});
  expect_values(run(m, {x}).at(0), {2}, {-24, 0});
}

}  // namespace
}  // namespace quernel::onnx_test
