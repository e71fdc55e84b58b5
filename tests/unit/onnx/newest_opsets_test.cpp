// What opsets 25 to 28 added to operators: values of ONNX's reference implementation.
#include <cmath>
#include <limits>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

Tensor typed(DType dtype, const std::vector<double>& values) {
  int64_t count = static_cast<int64_t>(values.size());
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, count)));
  for (int64_t i = 0; i < count; ++i) {
    if (is_float(dtype))
      store_f64(dtype, bytes.data(), i, values[static_cast<size_t>(i)]);
    else
      store_i64(dtype, bytes.data(), i, static_cast<int64_t>(values[static_cast<size_t>(i)]));
  }
  return {dtype, {count}, Bytes::own(std::move(bytes))};
}

int onnx_type(DType dtype) {
  return dtype == DType::kF16    ? 10
         : dtype == DType::kBF16 ? 16
         : dtype == DType::kF64  ? 11
         : dtype == DType::kI8   ? 3
                                 : kFloat;
}

// The same value, sign of zero included; NaN equals NaN.
void expect_same(const Tensor& tensor, const std::vector<double>& values) {
  ASSERT_EQ(static_cast<size_t>(tensor.count()), values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    double found = element_as_f64(tensor, static_cast<int64_t>(i));
    EXPECT_TRUE((std::isnan(found) && std::isnan(values[i])) ||
                (found == values[i] && std::signbit(found) == std::signbit(values[i])))
        << "element " << i << ": expected " << values[i] << ", found " << found;
  }
}

Tensor binary(const ModelBuilder& m, DType dtype, const std::vector<double>& a,
              const std::vector<double>& b) {
  std::vector<Tensor> y = run(m, {typed(dtype, a), typed(dtype, b)});
  return y.empty() ? Tensor() : y[0];
}

TEST(NewestOpsets, mod_of_floats_has_the_sign_of_the_divisor) {
  const std::vector<double> a{5.5, -5.5, 5.5, -5.5, 0., -0.,  7., -7., kInf, -kInf,
                              3.,  -3.,  3.,  -3.,  1., kNan, 2., 0.,  -0.},
      b{2., 2., -2., -2., -3., 3., .5, -.5, 2., 2., kInf, kInf, -kInf, -kInf, 0., 1., kNan, kInf, -kInf},
      y{1.5, .5, -.5, -1.5, -0., 0., 0., -0., kNan, kNan, 3., kInf, -kInf, -3., kNan, kNan, kNan, 0., -0.};
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    SCOPED_TRACE(to_string(dtype));
    ModelBuilder m(28);
    int64_t count = static_cast<int64_t>(a.size());
    m.input("a", {count}, onnx_type(dtype)).input("b", {count}, onnx_type(dtype)).output("y");
    m.node("Mod", {"a", "b"}, {"y"});
    expect_same(binary(m, dtype, a, b), y);
  }
}

TEST(NewestOpsets, mod_of_floats_needs_fmod_before_opset_28) {
  ModelBuilder m(27);
  m.input("a", {1}).input("b", {1}).output("y");
  onnx::NodeProto& node = m.node("Mod", {"a", "b"}, {"y"});
  Expected<ImportedModel> imported = m.import();
  ASSERT_FALSE(imported);
  EXPECT_NE(to_string(imported.errors()).find("expected attribute fmod=1 for Mod of floats before opset 28"),
            std::string::npos)
      << to_string(imported.errors());
  set_int(node, "fmod", 1);
  expect_same(binary(m, DType::kF32, {-5.5}, {2}), {-1.5});
}

TEST(NewestOpsets, space_to_depth_orders_blocks_as_its_mode_says) {
  const std::vector<double> columns_first{0,  2,  8,  10, 1,  3,  9,  11, 4,  6,  12, 14, 5,  7,  13, 15,
                                          16, 18, 24, 26, 17, 19, 25, 27, 20, 22, 28, 30, 21, 23, 29, 31},
      depth_first{0, 2, 8,  10, 16, 18, 24, 26, 1, 3, 9,  11, 17, 19, 25, 27,
                  4, 6, 12, 14, 20, 22, 28, 30, 5, 7, 13, 15, 21, 23, 29, 31};
  std::vector<float> x(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const char* mode : {"", "DCR", "CRD"}) {
    ModelBuilder m(28);
    m.input("x", {1, 2, 4, 4}).output("y");
    onnx::NodeProto& node = m.node("SpaceToDepth", {"x"}, {"y"});
    set_int(node, "blocksize", 2);
    if (*mode) set_string(node, "mode", mode);
    expect_values(run(m, {f32_tensor({1, 2, 4, 4}, x)}).at(0), {1, 8, 2, 2},
                  std::string(mode) == "CRD" ? columns_first : depth_first);
  }
}

// A block moved to depth and back, in either order, is where it was.
TEST(NewestOpsets, depth_to_space_undoes_space_to_depth) {
  std::vector<float> x(2 * 3 * 6 * 9);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const char* mode : {"DCR", "CRD"}) {
    ModelBuilder m(28);
    m.input("x", {2, 3, 6, 9}).output("y");
    for (auto [op, from, to] : {std::tuple("SpaceToDepth", "x", "t"), std::tuple("DepthToSpace", "t", "y")}) {
      onnx::NodeProto& node = m.node(op, {from}, {to});
      set_int(node, "blocksize", 3);
      set_string(node, "mode", mode);
    }
    expect_values(run(m, {f32_tensor({2, 3, 6, 9}, x)}).at(0), {2, 3, 6, 9}, {x.begin(), x.end()});
  }
}

Expected<ImportedModel> import_range(DType dtype, const std::vector<double>& bounds, int64_t stash,
                                     int64_t opset = 27) {
  ModelBuilder m(opset);
  m.input("z", {1}, onnx_type(dtype)).output("y");
  const char* names[] = {"start", "limit", "delta"};
  for (size_t i = 0; i < 3; ++i) {
    Tensor value = typed(dtype, {bounds[i]});
    onnx::TensorProto& tensor = *m.graph().add_initializer();
    tensor.set_name(names[i]);
    tensor.set_data_type(onnx_type(dtype));
    tensor.set_raw_data(value.bytes.data(), value.bytes.size());
  }
  onnx::NodeProto& node = m.node("Range", {"start", "limit", "delta"}, {"r"});
  if (stash) set_int(node, "stash_type", stash);
  m.node("Add", {"r", "z"}, {"y"});
  return m.import();
}

TEST(NewestOpsets, range_of_narrow_floats_counts_in_wide_ones) {
  struct Case {
    DType dtype;
    std::vector<double> bounds, values;
  };
  const Case cases[] = {
      {DType::kF16, {2040, 2060, 1}, {2040, 2041, 2042, 2043, 2044, 2045, 2046, 2047, 2048, 2048,
                                      2050, 2052, 2052, 2052, 2054, 2056, 2056, 2056, 2058, 2060}},
      {DType::kF16,
       {1, -1, -.3},
       {1, .7001953125, .39990234375, .099853515625, -.2001953125, -.5, -.80029296875}},
      {DType::kBF16, {250, 264, 1}, {250, 251, 252, 253, 254, 255, 256, 256, 258, 260, 260, 260, 262, 264}},
      {DType::kF32, {0, 3, 1}, {0, 1, 2}},
  };
  for (const Case& c : cases)
    for (int64_t stash : {0, 1, 11}) {
      Expected<ImportedModel> imported = import_range(c.dtype, c.bounds, stash);
      ASSERT_TRUE(imported) << to_string(imported.errors());
      Expected<std::vector<Tensor>> y = interpret(imported->graph, {typed(c.dtype, {0})});
      ASSERT_TRUE(y) << to_string(y.errors());
      expect_same((*y)[0], c.values);
    }
}

TEST(NewestOpsets, range_refuses_other_stash_types) {
  for (auto [opset, stash, text] :
       {std::tuple(27, 10, "attribute 'stash_type': expected 1 (float) or 11 (double), found 10"),
        std::tuple(26, 1, "unknown attribute 'stash_type' at opset 26")}) {
    Expected<ImportedModel> imported = import_range(DType::kF16, {0, 3, 1}, stash, opset);
    ASSERT_FALSE(imported);
    EXPECT_NE(to_string(imported.errors()).find(text), std::string::npos) << to_string(imported.errors());
  }
}

// Scores change their signs, weights are squared; two heads share a key head.
TEST(NewestOpsets, flex_attention_runs_its_graphs) {
  ModelBuilder m(26);
  auto* import = m.model.add_opset_import();
  import->set_domain("ai.onnx.preview");
  import->set_version(1);
  m.input("q", {1, 2, 2, 2}).input("k", {1, 1, 3, 2}).input("v", {1, 1, 3, 1}).output("y");
  onnx::NodeProto& node = m.node("FlexAttention", {"q", "k", "v"}, {"y"});
  node.set_domain("ai.onnx.preview");
  set_float(node, "scale", 0.5);
  for (bool scores : {true, false}) {
    onnx::GraphProto& graph = set_graph(node, scores ? "score_mod" : "prob_mod");
    ModelBuilder::describe(*graph.add_input(), "s", {1, 2, 2, 3}, kFloat);
    graph.add_output()->set_name("t");
    onnx::NodeProto& inner = *graph.add_node();
    inner.set_op_type(scores ? "Neg" : "Mul");
    inner.add_output("t");
    for (int i = 0; i < (scores ? 1 : 2); ++i) inner.add_input("s");
  }
  std::vector<Tensor> y =
      run(m, {f32_tensor({1, 2, 2, 2}, {1, 2, -1, .5, .3f, -2, 4, 1}),
              f32_tensor({1, 1, 3, 2}, {1, 0, -1, 2, .5, .5}), f32_tensor({1, 1, 3, 1}, {10, -20, 30})});
  ASSERT_EQ(y.size(), 1u);
  expect_values(y[0], {1, 2, 2, 1}, {5.5312302, 6.3499027, -11.5927866, -14.7190704}, 1e-4);
}

TEST(NewestOpsets, bit_shift_of_signed_integers_keeps_the_sign_to_the_right) {
  const std::vector<double> x{-128, -1, -5, 127, 64, 3, -4, -4, 5}, by{1, 3, 1, 2, 2, 8, 9, -1, -1},
      left{0, -8, -10, -4, 0, 0, 0, 0, 0}, right{-64, -1, -3, 31, 16, 0, -1, -1, 0};
  for (bool to_left : {true, false}) {
    ModelBuilder m(28);
    m.input("x", {9}, 3).input("by", {9}, 3).output("y");
    set_string(m.node("BitShift", {"x", "by"}, {"y"}), "direction", to_left ? "LEFT" : "RIGHT");
    expect_same(binary(m, DType::kI8, x, by), to_left ? left : right);
  }
}

}  // namespace
}  // namespace quernel::onnx_test
