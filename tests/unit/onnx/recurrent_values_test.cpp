// Recurrent operators and loops, as far as ONNX's own cases leave them out.
#include <cmath>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

constexpr double kX[] = {0.5, -1, 2};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// An LSTM of one feature and one hidden element in each direction, with the weights of `weights`.
ModelBuilder lstm(const std::vector<int64_t>& x) {
  ModelBuilder m;
  m.input("x", x).output("y").output("h").output("c");
  m.floats("w", {1, 4, 1}, {0.5f, -0.25f, 0.75f, 1});
  m.floats("r", {1, 4, 1}, {0.1f, 0.2f, 0.3f, 0.4f});
  m.floats("b", {1, 8}, {0, 0.1f, 0, 0, 0, 0, 0.2f, 0});
  return m;
}

TEST(Recurrent, reverse_lstm_couples_gates_clips_and_looks_through_peepholes) {
  ModelBuilder m = lstm({3, 1, 1});
  m.floats("p", {1, 3}, {0.3f, 0.6f, 0.9f});
  onnx::NodeProto& node = m.node("LSTM", {"x", "w", "r", "b", "", "", "", "p"}, {"y", "h", "c"});
  set_string(node, "direction", "reverse");
  set_int(node, "input_forget", 1);
  set_float(node, "clip", 0.8f);
  double h = 0, c = 0;
  std::vector<double> y(3);
  auto clip = [](double v) { return std::min(std::max(v, -0.8), 0.8); };
  for (int t = 2; t >= 0; --t) {
    double x = kX[t];
    double i = logistic(clip(0.5 * x + 0.1 * h + 0.3 * c)), candidate = std::tanh(clip(x + 0.4 * h));
    c = (1 - i) * c + i * candidate;
    double o = logistic(clip(-0.25 * x + 0.1 + 0.2 * h + 0.6 * c));
    y[static_cast<size_t>(t)] = h = o * std::tanh(clip(c));
  }
  std::vector<Tensor> out = run(m, {f32_tensor({3, 1, 1}, {0.5f, -1, 2})});
  expect_values(out.at(0), {3, 1, 1, 1}, y);
  expect_values(out.at(1), {1, 1, 1}, {h});
  expect_values(out.at(2), {1, 1, 1}, {c});
}

TEST(Recurrent, states_stay_beyond_a_sequence_s_length) {
  for (bool reverse : {false, true}) {
    ModelBuilder m;
    m.input("x", {3, 2, 1}).input("lengths", {2}, 6).output("y").output("h");
    m.floats("w", {1, 1, 1}, {1});
    m.floats("r", {1, 1, 1}, {10});
    onnx::NodeProto& node = m.node("RNN", {"x", "w", "r", "", "lengths"}, {"y", "h"});
    set_string(node, "direction", reverse ? "reverse" : "forward");
    attribute(node, "activations", onnx::AttributeProto::STRINGS).add_strings("Affine");
    Tensor lengths = make_tensor<int32_t>(DType::kI32, {2}, {2, 3});
    std::vector<Tensor> out = run(m, {f32_tensor({3, 2, 1}, {1, 1, 2, 2, 3, 3}), lengths});
    expect_values(
        out.at(0), {3, 1, 2, 1},
        reverse ? std::vector<double>{21, 321, 2, 32, 0, 3} : std::vector<double>{1, 1, 12, 12, 0, 123});
    expect_values(out.at(1), {1, 2, 1},
                  reverse ? std::vector<double>{21, 321} : std::vector<double>{12, 123});
  }
}

TEST(Recurrent, both_directions_with_the_batch_first_and_activations_of_their_own) {
  ModelBuilder m;
  m.input("x", {1, 2, 1}).output("y").output("h");
  m.floats("w", {2, 1, 1}, {1, 1});
  m.floats("r", {2, 1, 1}, {1, 1});
  m.floats("h0", {1, 2, 1}, {10, 20});
  onnx::NodeProto& node = m.node("RNN", {"x", "w", "r", "", "", "h0"}, {"y", "h"});
  set_string(node, "direction", "bidirectional");
  set_int(node, "layout", 1);
  onnx::AttributeProto& names = attribute(node, "activations", onnx::AttributeProto::STRINGS);
  names.add_strings("relu");
  names.add_strings("Affine");
  attribute(node, "activation_alpha", onnx::AttributeProto::FLOATS).add_floats(2);
  attribute(node, "activation_beta", onnx::AttributeProto::FLOATS).add_floats(1);
  std::vector<Tensor> out = run(m, {f32_tensor({1, 2, 1}, {-20, 3})});
  // Forward 0, 3; backward 2 * (20 + 3) + 1 = 47, 2 * (47 - 20) + 1 = 55.
  expect_values(out.at(0), {1, 2, 2, 1}, {0, 55, 3, 47});
  expect_values(out.at(1), {1, 2, 1}, {3, 55});
}

TEST(Recurrent, gru_resets_after_the_product) {
  ModelBuilder m;
  m.input("x", {2, 1, 1}).output("y");
  m.floats("w", {1, 3, 1}, {0.5f, -0.5f, 1});
  m.floats("r", {1, 3, 1}, {0.1f, 0.2f, 0.3f});
  m.floats("b", {1, 6}, {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f});
  set_int(m.node("GRU", {"x", "w", "r", "b"}, {"y"}), "linear_before_reset", 1);
  double h = 0;
  std::vector<double> y;
  for (double x : {0.5, -1.0}) {
    double z = logistic(0.5 * x + 0.1 * h + 0.5), r = logistic(-0.5 * x + 0.2 * h + 0.7);
    h = (1 - z) * std::tanh(x + 0.3 + r * (0.3 * h + 0.6)) + z * h;
    y.push_back(h);
  }
  expect_values(run(m, {f32_tensor({2, 1, 1}, {0.5, -1})}).at(0), {2, 1, 1, 1}, y);
}

TEST(Recurrent, a_batch_may_be_free) {
  ModelBuilder m;
  m.input("x", {2, -1, 1}, kFloat, {"", "batch"}).output("h");
  m.floats("w", {1, 1, 1}, {1});
  m.floats("r", {1, 1, 1}, {1});
  attribute(m.node("RNN", {"x", "w", "r"}, {"", "h"}), "activations", onnx::AttributeProto::STRINGS)
      .add_strings("Affine");
  expect_values(run(m, {f32_tensor({2, 3, 1}, {1, 2, 3, 4, 5, 6})}).at(0), {1, 3, 1}, {5, 7, 9});
}

// 2048 + 1 + 1 is 2050 in f32, but 2048 in f16.
TEST(Recurrent, narrow_floats_are_computed_wide) {
  ModelBuilder m;
  m.input("x", {3, 1, 1}).output("y");
  m.floats("one", {1, 1, 1}, {1});
  set_int(m.node("Cast", {"x"}, {"x16"}), "to", 10);
  set_int(m.node("Cast", {"one"}, {"one16"}), "to", 10);
  attribute(m.node("RNN", {"x16", "one16", "one16"}, {"", "y"}), "activations", onnx::AttributeProto::STRINGS)
      .add_strings("Affine");
  Tensor y = run(m, {f32_tensor({3, 1, 1}, {2048, 1, 1})}).at(0);
  EXPECT_EQ(y.dtype, DType::kF16);
  expect_values(y, {1, 1, 1}, {2050});
}

onnx::NodeProto& add_node(onnx::GraphProto& g, const std::string& op, const std::vector<std::string>& inputs,
                          const std::string& output) {
  onnx::NodeProto& node = *g.add_node();
  node.set_op_type(op);
  for (const std::string& name : inputs) node.add_input(name);
  node.add_output(output);
  return node;
}

// A body that doubles a value, also as a scan output, while the iteration's number is below `limit`.
void set_doubling_body(onnx::NodeProto& loop) {
  onnx::GraphProto& body = set_graph(loop, "body");
  for (const char* name : {"i", "c_in", "v"}) body.add_input()->set_name(name);
  for (const char* name : {"c_out", "w", "scan"}) body.add_output()->set_name(name);
  add_node(body, "Less", {"i", "limit"}, "c_out");
  add_node(body, "Add", {"v", "v"}, "w");
  add_node(body, "Identity", {"w"}, "scan");
}

TEST(Loops, a_condition_that_becomes_false_ends_a_loop) {
  for (bool counted : {false, true}) {
    ModelBuilder m;
    m.input("x", {1}).output("y").output("all");
    m.ints("limit", {}, {2});
    m.ints("trips", {}, {2});
    m.ints("one", {}, {1});
    set_int(m.node("Cast", {"one"}, {"yes"}), "to", kBool);
    set_doubling_body(m.node("Loop", {counted ? "trips" : "", "yes", "x"}, {"y", "all"}));
    std::vector<Tensor> out = run(m, {f32_tensor({1}, {1})});
    // Three iterations until the condition is false, two that are counted.
    expect_values(out.at(0), {1}, {counted ? 4.0 : 8.0});
    expect_values(out.at(1), {counted ? 2 : 3, 1},
                  counted ? std::vector<double>{2, 4} : std::vector<double>{2, 4, 8});
  }
}

TEST(Loops, without_iterations_carried_values_pass_and_scan_outputs_are_empty) {
  ModelBuilder m;
  m.input("x", {2}).output("y").output("all");
  m.ints("limit", {}, {2});
  m.ints("trips", {}, {0});
  set_doubling_body(m.node("Loop", {"trips", "", "x"}, {"y", "all"}));
  std::vector<Tensor> out = run(m, {f32_tensor({2}, {1, 2})});
  expect_values(out.at(0), {2}, {1, 2});
  expect_values(out.at(1), {0, 2}, {});
}

TEST(Loops, without_trip_count_and_condition_a_loop_is_refused) {
  ModelBuilder m;
  m.input("x", {2}).output("y").output("all");
  m.ints("limit", {}, {2});
  set_doubling_body(m.node("Loop", {"", "", "x"}, {"y", "all"}));
  Expected<ImportedModel> imported = m.import();
  ASSERT_FALSE(imported);
  EXPECT_NE(to_string(imported.errors()).find("a Loop without trip count and condition does not end"),
            std::string::npos);
}

TEST(Loops, sequences_grow_in_a_loop) {
  ModelBuilder m;
  m.input("x", {1}).output("y");
  m.ints("trips", {}, {3});
  m.node("SequenceEmpty", {}, {"none"});
  onnx::GraphProto& body = set_graph(m.node("Loop", {"trips", "", "none"}, {"s"}), "body");
  for (const char* name : {"i", "c_in", "v"}) body.add_input()->set_name(name);
  for (const char* name : {"c_in", "w"}) body.add_output()->set_name(name);
  set_int(add_node(body, "Cast", {"i"}, "number"), "to", kFloat);
  add_node(body, "Add", {"x", "number"}, "sum");
  add_node(body, "SequenceInsert", {"v", "sum"}, "w");
  set_int(m.node("ConcatFromSequence", {"s"}, {"y"}), "axis", 0);
  expect_values(run(m, {f32_tensor({1}, {10})}).at(0), {3}, {10, 11, 12});
}

TEST(Loops, scan_reverses_and_moves_axes) {
  ModelBuilder m;
  m.input("x", {2, 3}).output("last").output("sums");
  m.floats("zero", {2}, {0, 0});
  onnx::NodeProto& scan = m.node("Scan", {"zero", "x"}, {"last", "sums"});
  onnx::GraphProto& body = set_graph(scan, "body");
  for (const char* name : {"s", "e"}) body.add_input()->set_name(name);
  for (const char* name : {"t", "copy"}) body.add_output()->set_name(name);
  add_node(body, "Add", {"s", "e"}, "t");
  add_node(body, "Identity", {"t"}, "copy");
  set_int(scan, "num_scan_inputs", 1);
  set_ints(scan, "scan_input_axes", {-1});
  set_ints(scan, "scan_input_directions", {1});
  set_ints(scan, "scan_output_axes", {1});
  set_ints(scan, "scan_output_directions", {1});
  std::vector<Tensor> out = run(m, {f32_tensor({2, 3}, {1, 2, 3, 4, 5, 6})});
  expect_values(out.at(0), {2}, {6, 15});
  expect_values(out.at(1), {2, 3}, {6, 5, 3, 15, 11, 6});
}

}  // namespace
}  // namespace quernel::onnx_test
