// Imported models compute what their operators mean: interpreted, and compared with values worked out by
// hand.
#include <cmath>
#include <cstring>
#include <limits>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

TEST(ImportValues, conv_pads_strides_and_adds_bias) {
  ModelBuilder m;
  m.input("x", {1, 1, 3, 3}).output("y");
  m.floats("w", {1, 1, 2, 2}, {1, 2, 3, 4});
  m.floats("b", {1}, {10});
  auto& node = m.node("Conv", {"x", "w", "b"}, {"y"});
  set_ints(node, "pads", {1, 1, 0, 0});
  set_ints(node, "strides", {2, 2});
  std::vector<Tensor> y = run(m, {f32_tensor({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})});
  // Windows at -1 and 1: 4*1; 3*2 + 4*3; 2*4 + 4*7; 1*5 + 2*6 + 3*8 + 4*9.
  expect_values(y.at(0), {1, 1, 2, 2}, {14, 28, 46, 87});
}

TEST(ImportValues, depthwise_conv_keeps_channels_apart) {
  ModelBuilder m;
  m.input("x", {1, 2, 1, 2}).output("y");
  m.floats("w", {2, 1, 1, 1}, {2, 3});
  set_int(m.node("Conv", {"x", "w"}, {"y"}), "group", 2);
  expect_values(run(m, {f32_tensor({1, 2, 1, 2}, {1, 2, 3, 4})}).at(0), {1, 2, 1, 2}, {2, 4, 9, 12});
}

TEST(ImportValues, conv_transpose_spreads_the_kernel) {
  ModelBuilder m;
  m.input("x", {1, 1, 2}).output("y");
  m.floats("w", {1, 1, 3}, {1, 10, 100});
  set_ints(m.node("ConvTranspose", {"x", "w"}, {"y"}), "strides", {2});
  expect_values(run(m, {f32_tensor({1, 1, 2}, {1, 2})}).at(0), {1, 1, 5}, {1, 10, 102, 20, 200});
}

TEST(ImportValues, max_pool_ceil_mode_adds_a_partial_window) {
  ModelBuilder m;
  m.input("x", {1, 1, 5}).output("y");
  auto& node = m.node("MaxPool", {"x"}, {"y"});
  set_ints(node, "kernel_shape", {2});
  set_ints(node, "strides", {2});
  set_int(node, "ceil_mode", 1);
  expect_values(run(m, {f32_tensor({1, 1, 5}, {-5, -4, -3, -2, -1})}).at(0), {1, 1, 3}, {-4, -2, -1});
}

TEST(ImportValues, max_pool_indices_count_through_all_planes) {
  ModelBuilder m;
  m.input("x", {1, 2, 3}).output("y").output("i");
  set_ints(m.node("MaxPool", {"x"}, {"y", "i"}), "kernel_shape", {2});
  std::vector<Tensor> y = run(m, {f32_tensor({1, 2, 3}, {1, 3, 2, 6, 5, 7})});
  expect_values(y.at(0), {1, 2, 2}, {3, 3, 6, 7});
  expect_values(y.at(1), {1, 2, 2}, {1, 1, 3, 5});
}

TEST(ImportValues, average_pool_counts_only_the_input_unless_asked) {
  for (bool include_pad : {false, true}) {
    ModelBuilder m;
    m.input("x", {1, 1, 3}).output("y");
    auto& node = m.node("AveragePool", {"x"}, {"y"});
    set_ints(node, "kernel_shape", {2});
    set_ints(node, "pads", {1, 0});
    set_int(node, "count_include_pad", include_pad);
    expect_values(run(m, {f32_tensor({1, 1, 3}, {2, 4, 6})}).at(0), {1, 1, 3},
                  {include_pad ? 1.0 : 2.0, 3, 5});
  }
}

TEST(ImportValues, batch_normalization_becomes_scale_and_shift) {
  ModelBuilder m;
  m.input("x", {1, 2, 1}).output("y");
  m.floats("gamma", {2}, {2, 1});
  m.floats("beta", {2}, {1, 0});
  m.floats("mean", {2}, {1, 2});
  m.floats("var", {2}, {4, 1});
  set_float(m.node("BatchNormalization", {"x", "gamma", "beta", "mean", "var"}, {"y"}), "epsilon", 0);
  expect_values(run(m, {f32_tensor({1, 2, 1}, {5, 5})}).at(0), {1, 2, 1}, {5, 3});
}

TEST(ImportValues, gemm_transposes_and_scales) {
  ModelBuilder m;
  m.input("a", {2, 1}).output("y");
  m.floats("b", {2, 2}, {1, 2, 3, 4});
  m.floats("c", {2}, {1, 1});
  auto& node = m.node("Gemm", {"a", "b", "c"}, {"y"});
  set_int(node, "transA", 1);
  set_int(node, "transB", 1);
  set_float(node, "alpha", 2);
  set_float(node, "beta", 3);
  expect_values(run(m, {f32_tensor({2, 1}, {1, 10})}).at(0), {1, 2}, {2 * 21 + 3, 2 * 43 + 3});
}

TEST(ImportValues, matmul_broadcasts_batches) {
  ModelBuilder m;
  m.input("a", {2, 1, 2}).output("y");
  m.floats("b", {2, 1}, {1, 10});
  m.node("MatMul", {"a", "b"}, {"y"});
  expect_values(run(m, {f32_tensor({2, 1, 2}, {1, 2, 3, 4})}).at(0), {2, 1, 1}, {21, 43});
}

TEST(ImportValues, einsum_takes_a_diagonal) {
  ModelBuilder m;
  m.input("a", {2, 2}).output("y");
  set_string(m.node("Einsum", {"a"}, {"y"}), "equation", "ii->i");
  expect_values(run(m, {f32_tensor({2, 2}, {1, 2, 3, 4})}).at(0), {2}, {1, 4});
}

TEST(ImportValues, softmax_before_opset_13_flattens) {
  ModelBuilder m(11);
  m.input("x", {1, 2, 2}).output("y");
  m.node("Softmax", {"x"}, {"y"});
  expect_values(run(m, {f32_tensor({1, 2, 2}, {0, 0, 0, 0})}).at(0), {1, 2, 2}, {.25, .25, .25, .25});
}

TEST(ImportValues, layer_normalization_has_unit_variance) {
  ModelBuilder m;
  m.input("x", {1, 2}).output("y");
  m.floats("scale", {2}, {1, 2});
  m.floats("bias", {2}, {0, 1});
  set_float(m.node("LayerNormalization", {"x", "scale", "bias"}, {"y"}), "epsilon", 0);
  expect_values(run(m, {f32_tensor({1, 2}, {1, 3})}).at(0), {1, 2}, {-1, 3});
}

TEST(ImportValues, clip_with_min_above_max_gives_max) {
  ModelBuilder m;
  m.input("x", {3}).output("y");
  m.floats("lo", {}, {2});
  m.floats("hi", {}, {1});
  m.node("Clip", {"x", "lo", "hi"}, {"y"});
  expect_values(run(m, {f32_tensor({3}, {0, 1.5, 3})}).at(0), {3}, {1, 1, 1});
}

TEST(ImportValues, slice_backwards_from_the_end) {
  ModelBuilder m;
  m.input("x", {5}).output("y");
  m.ints("starts", {1}, {-1});
  m.ints("ends", {1}, {INT64_MIN});
  m.ints("axes", {1}, {0});
  m.ints("steps", {1}, {-2});
  m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
  expect_values(run(m, {f32_tensor({5}, {0, 1, 2, 3, 4})}).at(0), {3}, {4, 2, 0});
}

TEST(ImportValues, split_with_num_outputs_leaves_a_smaller_last_part) {
  ModelBuilder m(18);
  m.input("x", {5}).output("a").output("b");
  set_int(m.node("Split", {"x"}, {"a", "b"}), "num_outputs", 2);
  std::vector<Tensor> y = run(m, {f32_tensor({5}, {0, 1, 2, 3, 4})});
  expect_values(y.at(0), {3}, {0, 1, 2});
  expect_values(y.at(1), {2}, {3, 4});
}

TEST(ImportValues, negative_pads_cut) {
  ModelBuilder m;
  m.input("x", {3}).output("y");
  m.ints("pads", {2}, {-1, 2});
  m.floats("value", {}, {9});
  m.node("Pad", {"x", "pads", "value"}, {"y"});
  expect_values(run(m, {f32_tensor({3}, {1, 2, 3})}).at(0), {4}, {2, 3, 9, 9});
}

TEST(ImportValues, resize_nearest_doubles) {
  ModelBuilder m;
  m.input("x", {1, 1, 2}).output("y");
  m.floats("scales", {3}, {1, 1, 2});
  m.node("Resize", {"x", "", "scales"}, {"y"});
  expect_values(run(m, {f32_tensor({1, 1, 2}, {1, 2})}).at(0), {1, 1, 4}, {1, 1, 2, 2});
}

TEST(ImportValues, resize_linear_half_pixel) {
  ModelBuilder m;
  m.input("x", {1, 1, 2}).output("y");
  m.ints("sizes", {3}, {1, 1, 4});
  set_string(m.node("Resize", {"x", "", "", "sizes"}, {"y"}), "mode", "linear");
  expect_values(run(m, {f32_tensor({1, 1, 2}, {1, 2})}).at(0), {1, 1, 4}, {1, 1.25, 1.75, 2});
}

TEST(ImportValues, dropout_passes_data_and_a_mask_of_true) {
  ModelBuilder m;
  m.input("x", {2}).output("y").output("mask");
  m.node("Dropout", {"x"}, {"y", "mask"});
  std::vector<Tensor> y = run(m, {f32_tensor({2}, {1, 2})});
  expect_values(y.at(0), {2}, {1, 2});
  expect_values(y.at(1), {2}, {1, 1});
}

TEST(ImportValues, shape_arithmetic_folds_into_the_reshape) {
  ModelBuilder m;
  m.input("x", {2, 3, 4}).output("y");
  m.ints("zero", {1}, {0});
  m.ints("minus_one", {1}, {-1});
  m.node("Shape", {"x"}, {"shape"});
  m.node("Gather", {"shape", "zero"}, {"batch"});
  set_int(m.node("Concat", {"batch", "minus_one"}, {"target"}), "axis", 0);
  m.node("Reshape", {"x", "target"}, {"y"});
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  EXPECT_EQ(to_string(imported->graph.shape(imported->graph.outputs[0].value)), "[2,12]");
}

TEST(ImportValues, constant_of_shape_is_an_expanded_scalar) {
  ModelBuilder m;
  m.output("y");
  m.ints("shape", {3}, {1000, 1000, 1000});
  m.node("ConstantOfShape", {"shape"}, {"y"});
  Expected<ImportedModel> imported = m.import();
  ASSERT_TRUE(imported) << to_string(imported.errors());
  EXPECT_EQ(imported->graph.def(imported->graph.outputs[0].value)->op, OpKind::k_expand);
}

TEST(ImportValues, initializers_among_the_inputs_are_constants) {
  ModelBuilder m(8);
  m.model.set_ir_version(3);
  m.input("x", {2}).input("w", {2}).output("y");
  m.floats("w", {2}, {10, 20});
  m.node("Add", {"x", "w"}, {"y"});
  expect_values(run(m, {f32_tensor({2}, {1, 2})}).at(0), {2}, {11, 22});
}

TEST(ImportValues, nodes_in_any_order) {
  ModelBuilder m;
  m.input("x", {1}).output("y");
  m.node("Neg", {"t"}, {"y"});
  m.node("Abs", {"x"}, {"t"});
  expect_values(run(m, {f32_tensor({1}, {-3})}).at(0), {1}, {-3});
}

TEST(ImportValues, if_with_a_known_condition_is_inlined) {
  ModelBuilder m;
  m.input("x", {1}).output("y");
  auto& condition = *m.graph().add_initializer();
  condition.set_name("c");
  condition.set_data_type(kBool);
  condition.add_int32_data(1);
  auto& node = m.node("If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::GraphProto& g = set_graph(node, branch);
    auto& inner = *g.add_node();
    inner.set_op_type(std::string(branch) == "then_branch" ? "Neg" : "Loop");
    inner.add_input("x");
    inner.add_output("z");
    g.add_output()->set_name("z");
  }
  expect_values(run(m, {f32_tensor({1}, {3})}).at(0), {1}, {-3});
}

// Short branches become a selection, but not of a dtype that nothing computes with.
TEST(ImportValues, if_of_a_storage_dtype) {
  constexpr int kFloat8E4M3 = 17;
  ModelBuilder m;
  m.input("x", {2}).input("c", {}, kBool).output("y");
  auto& node = m.node("If", {"c"}, {"z"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::GraphProto& g = set_graph(node, branch);
    auto& minus = *g.add_node();
    minus.set_op_type(std::string(branch) == "then_branch" ? "Neg" : "Abs");
    minus.add_input("x");
    minus.add_output("s");
    auto& cast = *g.add_node();
    cast.set_op_type("Cast");
    cast.add_input("s");
    cast.add_output("t");
    set_int(cast, "to", kFloat8E4M3);
    g.add_output()->set_name("t");
  }
  set_int(m.node("Cast", {"z"}, {"y"}), "to", kFloat);
  for (uint8_t condition : {1, 0})
    expect_values(run(m, {f32_tensor({2}, {-3, 0.5f}), {DType::kBool, {}, Bytes::own({condition})}}).at(0),
                  {2}, condition ? std::vector<double>{3, -0.5} : std::vector<double>{3, 0.5});
}

TEST(ImportValues, model_local_functions_are_inlined_with_their_attributes) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  auto& function = *m.model.add_functions();
  function.set_name("Leak");
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  auto& inner = *function.add_node();
  inner.set_op_type("LeakyRelu");
  inner.add_input("a");
  inner.add_output("b");
  auto& reference = attribute(inner, "alpha", onnx::AttributeProto::FLOAT);
  reference.set_ref_attr_name("slope");
  auto& call = m.node("Leak", {"x"}, {"y"});
  call.set_domain("own");
  set_float(call, "slope", 0.5);
  expect_values(run(m, {f32_tensor({2}, {-2, 2})}).at(0), {2}, {-1, 2});
}

TEST(ImportValues, named_dims_become_symbols_or_numbers) {
  ModelBuilder m;
  m.input("x", {-1, 2}, kFloat, {"batch"}).output("y");
  m.node("Relu", {"x"}, {"y"});
  Expected<ImportedModel> symbolic = m.import();
  ASSERT_TRUE(symbolic) << to_string(symbolic.errors());
  EXPECT_EQ(to_string(symbolic->graph.shape(symbolic->graph.outputs[0].value)), "[batch,2]");
  ImportOptions options;
  options.dims["batch"] = 3;
  Expected<ImportedModel> fixed = m.import(options);
  ASSERT_TRUE(fixed) << to_string(fixed.errors());
  EXPECT_EQ(to_string(fixed->graph.shape(fixed->graph.outputs[0].value)), "[3,2]");
}

TEST(ImportValues, an_input_that_must_be_known_is_fixed_to_its_value) {
  ModelBuilder m;
  m.input("x", {4}).input("shape", {2}, kInt64).output("y");
  m.node("Reshape", {"x", "shape"}, {"y"});
  ImportOptions options;
  options.input_values["x"] = f32_tensor({4}, {0, 0, 0, 0});
  options.input_values["shape"] = i64_tensor({2}, {2, 2});
  Expected<ImportedModel> imported = m.import(options);
  ASSERT_TRUE(imported) << to_string(imported.errors());
  EXPECT_EQ(imported->fixed_inputs, std::vector<std::string>{"shape"});
  EXPECT_EQ(imported->graph.inputs.size(), 1u);
}

// Mean and variance of all elements.
std::pair<double, double> moments(const Tensor& x) {
  double sum = 0, squares = 0, count = static_cast<double>(x.count());
  for (int64_t i = 0; i < x.count(); ++i) sum += element_as_f64(x, i);
  for (int64_t i = 0; i < x.count(); ++i) squares += std::pow(element_as_f64(x, i) - sum / count, 2);
  return {sum / count, squares / count};
}

TEST(ImportValues, random_numbers_have_their_distribution) {
  ModelBuilder m;
  m.output("u").output("n").output("d");
  auto& uniform = m.node("RandomUniform", {}, {"u"});
  set_ints(uniform, "shape", {100, 200});
  set_float(uniform, "low", -1);
  set_float(uniform, "high", 3);
  auto& normal = m.node("RandomNormal", {}, {"n"});
  set_ints(normal, "shape", {20000});
  set_float(normal, "mean", 5);
  set_float(normal, "scale", 2);
  auto& wide = m.node("RandomNormal", {}, {"d"});
  set_ints(wide, "shape", {20000});
  set_int(wide, "dtype", 11);
  std::vector<Tensor> y = run(m, {});
  auto [u_mean, u_variance] = moments(y.at(0));
  EXPECT_NEAR(u_mean, 1, 0.03);
  EXPECT_NEAR(u_variance, 16.0 / 12, 0.03);
  for (int64_t i = 0; i < y[0].count(); ++i) {
    EXPECT_GE(element_as_f64(y[0], i), -1);
    EXPECT_LT(element_as_f64(y[0], i), 3);
  }
  auto [n_mean, n_variance] = moments(y.at(1));
  EXPECT_NEAR(n_mean, 5, 0.06);
  EXPECT_NEAR(n_variance, 4, 0.15);
  auto [d_mean, d_variance] = moments(y.at(2));
  EXPECT_NEAR(d_mean, 0, 0.03);
  EXPECT_NEAR(d_variance, 1, 0.04);
}

TEST(ImportValues, equal_seeds_give_equal_numbers_and_no_seed_one_of_its_own) {
  ModelBuilder m;
  m.input("x", {64});
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    m.output(name);
    auto& node = m.node("RandomUniformLike", {"x"}, {name});
    if (*name < 'd') set_float(node, "seed", *name == 'c' ? 2.0f : 1.0f);
  }
  std::vector<Tensor> y = run(m, {f32_tensor({64}, std::vector<float>(64))});
  auto same = [&](size_t i, size_t j) {
    return std::memcmp(y.at(i).bytes.data(), y.at(j).bytes.data(), y[i].bytes.size()) == 0;
  };
  EXPECT_TRUE(same(0, 1));
  EXPECT_FALSE(same(0, 2));
  EXPECT_FALSE(same(0, 3));
  EXPECT_FALSE(same(3, 4));
}

TEST(ImportValues, bernoulli_and_multinomial_follow_the_probabilities) {
  ModelBuilder m;
  m.input("p", {10000}).input("logits", {2, 3}).output("b").output("s");
  set_int(m.node("Bernoulli", {"p"}, {"b"}), "dtype", kBool);
  auto& draw = m.node("Multinomial", {"logits"}, {"s"});
  set_int(draw, "sample_size", 10000);
  set_int(draw, "dtype", kInt64);
  float none = -std::numeric_limits<float>::infinity();
  std::vector<Tensor> y = run(m, {f32_tensor({10000}, std::vector<float>(10000, 0.3f)),
                                  f32_tensor({2, 3}, {0, std::log(3.0f), none, none, 0, none})});
  EXPECT_NEAR(moments(y.at(0)).first, 0.3, 0.02);
  double ones = 0;
  for (int64_t i = 0; i < 10000; ++i) {
    EXPECT_LE(element_as_i64(y.at(1), i), 1);
    EXPECT_EQ(element_as_i64(y[1], 10000 + i), 1);
    ones += static_cast<double>(element_as_i64(y[1], i));
  }
  EXPECT_NEAR(ones / 10000, 0.75, 0.02);
}

TEST(ImportValues, tensor_scatter_wraps_around_a_circular_cache) {
  ModelBuilder m(24);
  m.input("cache", {2, 4, 1}).input("update", {2, 2, 1}).output("y");
  m.ints("at", {2}, {3, 1});
  set_string(m.node("TensorScatter", {"cache", "update", "at"}, {"y"}), "mode", "circular");
  std::vector<Tensor> y =
      run(m, {f32_tensor({2, 4, 1}, {0, 1, 2, 3, 4, 5, 6, 7}), f32_tensor({2, 2, 1}, {10, 20, 30, 40})});
  expect_values(y.at(0), {2, 4, 1}, {20, 1, 2, 10, 4, 30, 40, 7});
}

TEST(ImportValues, top_k_of_old_opsets) {
  ModelBuilder m(9);
  m.input("x", {4}).output("v").output("i");
  set_int(m.node("TopK", {"x"}, {"v", "i"}), "k", 2);
  std::vector<Tensor> y = run(m, {f32_tensor({4}, {1, 4, 3, 4})});
  expect_values(y.at(0), {2}, {4, 4});
  expect_values(y.at(1), {2}, {1, 3});
}

}  // namespace
}  // namespace quernel::onnx_test
