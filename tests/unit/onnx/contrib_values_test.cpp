// com.microsoft and ai.onnx.ml operators, which ONNX's conformance data do not cover.
#include <cmath>
#include <tuple>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

onnx::NodeProto& contrib(onnx::NodeProto& node) {
  node.set_domain("com.microsoft");
  return node;
}
onnx::NodeProto& ml(onnx::NodeProto& node) {
  node.set_domain("ai.onnx.ml");
  return node;
}
void set_floats(onnx::NodeProto& node, const std::string& name, const std::vector<float>& values) {
  onnx::AttributeProto& a = attribute(node, name, onnx::AttributeProto::FLOATS);
  for (float v : values) a.add_floats(v);
}
void set_strings(onnx::NodeProto& node, const std::string& name, const std::vector<std::string>& values) {
  onnx::AttributeProto& a = attribute(node, name, onnx::AttributeProto::STRINGS);
  for (const std::string& v : values) a.add_strings(v);
}

TEST(Contrib, skip_layer_normalization_also_gives_the_sum) {
  ModelBuilder m;
  m.input("x", {1, 1, 2}).input("skip", {1, 1, 2}).output("y").output("sum");
  m.floats("gamma", {2}, {2, 1});
  m.floats("beta", {2}, {0.5, 0});
  set_float(contrib(m.node("SkipLayerNormalization", {"x", "skip", "gamma", "beta"}, {"y", "", "", "sum"})),
            "epsilon", 0);
  std::vector<Tensor> y = run(m, {f32_tensor({1, 1, 2}, {0, 5}), f32_tensor({1, 1, 2}, {1, -2})});
  expect_values(y.at(0), {1, 1, 2}, {-1.5, 1});
  expect_values(y.at(1), {1, 1, 2}, {1, 3});
}

TEST(Contrib, skip_simplified_layer_normalization_divides_by_the_root_mean_square) {
  ModelBuilder m;
  m.input("x", {1, 2}).input("skip", {1, 2}).output("y");
  m.floats("gamma", {2}, {1, 10});
  set_float(contrib(m.node("SkipSimplifiedLayerNormalization", {"x", "skip", "gamma"}, {"y"})), "epsilon", 0);
  double root = std::sqrt(12.5);
  expect_values(run(m, {f32_tensor({1, 2}, {1, 1}), f32_tensor({1, 2}, {2, 3})}).at(0), {1, 2},
                {3 / root, 40 / root});
}

TEST(Contrib, fused_conv_activates_the_sum) {
  ModelBuilder m;
  m.input("x", {1, 1, 1, 2}).input("z", {1, 1, 1, 2}).output("y");
  m.floats("w", {1, 1, 1, 1}, {2});
  m.floats("b", {1}, {-3});
  onnx::NodeProto& node = contrib(m.node("FusedConv", {"x", "w", "b", "z"}, {"y"}));
  set_string(node, "activation", "LeakyRelu");
  set_floats(node, "activation_params", {0.5});
  // 2-3+5 = 4; 4-3-9 = -8
  expect_values(run(m, {f32_tensor({1, 1, 1, 2}, {1, 2}), f32_tensor({1, 1, 1, 2}, {5, -9})}).at(0),
                {1, 1, 1, 2}, {4, -4});
}

TEST(Contrib, fused_matmul_takes_the_first_dim_for_rows) {
  ModelBuilder m;
  m.input("a", {1, 2, 1}).input("b", {2, 1, 1}).output("y");
  set_int(contrib(m.node("FusedMatMul", {"a", "b"}, {"y"})), "transBatchA", 1);
  expect_values(run(m, {f32_tensor({1, 2, 1}, {2, 3}), f32_tensor({2, 1, 1}, {5, 7})}).at(0), {2, 1, 1},
                {10, 21});
}

// Queries of zeros see all keys alike, so results are means of the values that the masks leave.
TEST(Contrib, multi_head_attention_counts_keys) {
  ModelBuilder m;
  m.input("q", {1, 1, 1}).input("k", {1, 3, 1}).input("v", {1, 3, 1}).input("lengths", {1}, 6).output("y");
  set_int(contrib(m.node("MultiHeadAttention", {"q", "k", "v", "", "lengths"}, {"y"})), "num_heads", 1);
  std::vector<Tensor> y =
      run(m, {f32_tensor({1, 1, 1}, {0}), f32_tensor({1, 3, 1}, {1, 2, 3}), f32_tensor({1, 3, 1}, {3, 6, 12}),
              make_tensor<int32_t>(DType::kI32, {1}, {2})});
  expect_values(y.at(0), {1, 1, 1}, {4.5});
}

TEST(Contrib, attention_projects_and_keeps_the_past) {
  ModelBuilder m;
  m.input("x", {1, 1, 1}).input("past", {2, 1, 1, 1, 1}).output("y").output("present");
  m.floats("w", {1, 3}, {0, 1, 10});
  m.floats("b", {3}, {0, 0, 1});
  set_int(contrib(m.node("Attention", {"x", "w", "b", "", "past"}, {"y", "present"})), "num_heads", 1);
  std::vector<Tensor> y = run(m, {f32_tensor({1, 1, 1}, {2}), f32_tensor({2, 1, 1, 1, 1}, {5, 7})});
  expect_values(y.at(0), {1, 1, 1}, {14});  // the mean of 7 and 2*10+1
  expect_values(y.at(1), {2, 1, 1, 2, 1}, {5, 2, 7, 21});
}

TEST(Contrib, group_query_attention_is_causal_within_its_window) {
  for (auto [window, last] : {std::pair{-1, 5.0}, {2, 6.5}}) {
    ModelBuilder m;
    m.input("q", {1, 3, 2}).input("k", {1, 3, 1}).input("v", {1, 3, 1}).input("lengths", {1}, 6).output("y");
    onnx::TensorProto& total = *m.graph().add_initializer();
    total.set_name("total");
    total.set_data_type(6);
    total.add_int32_data(3);
    onnx::NodeProto& node =
        contrib(m.node("GroupQueryAttention", {"q", "k", "v", "", "", "lengths", "total"}, {"y"}));
    set_int(node, "num_heads", 2);
    set_int(node, "kv_num_heads", 1);
    set_int(node, "local_window_size", window);
    std::vector<Tensor> y =
        run(m, {f32_tensor({1, 3, 2}, {0, 0, 0, 0, 0, 0}), f32_tensor({1, 3, 1}, {1, 2, 3}),
                f32_tensor({1, 3, 1}, {2, 4, 9}), make_tensor<int32_t>(DType::kI32, {1}, {2})});
    expect_values(y.at(0), {1, 3, 2}, {2, 2, 3, 3, last, last});
  }
}

// Rows of different length in a cache of 4: the new token stands behind each row's own past.
TEST(Contrib, group_query_attention_writes_into_a_shared_buffer) {
  for (bool known : {true, false}) {
    ModelBuilder m;
    m.input("q", {2, 1, 1}).input("k", {2, 1, 1}).input("v", {2, 1, 1}).input("lengths", {2}, 6).output("y");
    m.input("past_k", {2, 1, 4, 1}).input("past_v", {2, 1, 4, 1}).output("present_k").output("present_v");
    if (known) {
      onnx::TensorProto& total = *m.graph().add_initializer();
      total.set_name("total");
      total.set_data_type(6);
      total.add_int32_data(3);
    } else {
      m.input("total", {1}, 6);
    }
    onnx::NodeProto& node =
        contrib(m.node("GroupQueryAttention", {"q", "k", "v", "past_k", "past_v", "lengths", "total"},
                       {"y", "present_k", "present_v"}));
    set_int(node, "num_heads", 1);
    set_int(node, "kv_num_heads", 1);
    std::vector<Tensor> inputs{f32_tensor({2, 1, 1}, {0, 0}),
                               f32_tensor({2, 1, 1}, {5, 6}),
                               f32_tensor({2, 1, 1}, {30, 40}),
                               make_tensor<int32_t>(DType::kI32, {2}, {1, 2}),
                               f32_tensor({2, 1, 4, 1}, {1, 9, 9, 9, 2, 3, 9, 9}),
                               f32_tensor({2, 1, 4, 1}, {10, 99, 99, 99, 20, 30, 99, 99})};
    if (!known) inputs.push_back(make_tensor<int32_t>(DType::kI32, {1}, {3}));
    std::vector<Tensor> y = run(m, inputs);
    expect_values(y.at(0), {2, 1, 1}, {20, 30});  // means of 10, 30 and of 20, 30, 40
    expect_values(y.at(1), {2, 1, 4, 1}, {1, 5, 9, 9, 2, 3, 6, 9});
    expect_values(y.at(2), {2, 1, 4, 1}, {10, 30, 99, 99, 20, 30, 40, 99});
  }
}

// A prompt in a shared buffer begins at 0 whatever the buffer holds; rotation counts from there, too.
TEST(Contrib, group_query_attention_rotates_by_the_rows_positions) {
  for (auto [steps, length, first] : {std::tuple{2, 2, 0}, {1, 3, 2}}) {
    ModelBuilder m;
    m.input("q", {1, steps, 2}).input("k", {1, steps, 2}).input("v", {1, steps, 2}).input("lengths", {1}, 6);
    m.input("past_k", {1, 1, 4, 2}).input("past_v", {1, 1, 4, 2}).output("y").output("present_k");
    onnx::TensorProto& total = *m.graph().add_initializer();
    total.set_name("total");
    total.set_data_type(6);
    total.add_int32_data(length);
    m.floats("cos", {4, 1}, {1, 0, -1, 0});
    m.floats("sin", {4, 1}, {0, 1, 0, -1});
    onnx::NodeProto& node = contrib(
        m.node("GroupQueryAttention", {"q", "k", "v", "past_k", "past_v", "lengths", "total", "cos", "sin"},
               {"y", "present_k"}));
    set_int(node, "num_heads", 1);
    set_int(node, "kv_num_heads", 1);
    set_int(node, "do_rotary", 1);
    std::vector<float> tokens(static_cast<size_t>(2 * steps));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<float>(i + 1);
    std::vector<float> past(8, 7);
    Tensor x = f32_tensor({1, steps, 2}, tokens);
    std::vector<Tensor> y = run(m, {x, x, x, make_tensor<int32_t>(DType::kI32, {1}, {length - 1}),
                                    f32_tensor({1, 1, 4, 2}, past), f32_tensor({1, 1, 4, 2}, past)});
    std::vector<double> present(8, 7);
    for (int i = 0; i < steps; ++i) {
      double a = tokens[2 * i], b = tokens[2 * i + 1];
      static constexpr double kCos[] = {1, 0, -1, 0}, kSin[] = {0, 1, 0, -1};
      int at = first + i;
      present[2 * at] = a * kCos[at] - b * kSin[at];
      present[2 * at + 1] = a * kSin[at] + b * kCos[at];
    }
    expect_values(y.at(1), {1, 1, 4, 2}, present);
  }
}

// A cache that grows: the past's length and the total's are free.
TEST(Contrib, group_query_attention_grows_by_free_sizes) {
  ModelBuilder m;
  m.input("q", {1, -1, 1}, kFloat, {"", "steps"}).input("k", {1, -1, 1}, kFloat, {"", "steps"});
  m.input("v", {1, -1, 1}, kFloat, {"", "steps"}).input("lengths", {1}, 6);
  m.input("past_k", {1, 1, -1, 1}, kFloat, {"", "", "past"});
  m.input("past_v", {1, 1, -1, 1}, kFloat, {"", "", "past"});
  m.input("mask", {1, -1}, kInt64, {"", "total"}).output("y").output("present_v");
  m.ints("one", {}, {1});
  m.node("Shape", {"mask"}, {"mask_shape"});
  m.node("Gather", {"mask_shape", "one"}, {"total_long"});
  set_int(m.node("Cast", {"total_long"}, {"total"}), "to", 6);
  onnx::NodeProto& node =
      contrib(m.node("GroupQueryAttention", {"q", "k", "v", "past_k", "past_v", "lengths", "total"},
                     {"y", "", "present_v"}));
  node.set_output(1, "present_k");
  m.output("present_k");
  set_int(node, "num_heads", 1);
  set_int(node, "kv_num_heads", 1);
  std::vector<Tensor> y =
      run(m, {f32_tensor({1, 2, 1}, {0, 0}), f32_tensor({1, 2, 1}, {5, 6}), f32_tensor({1, 2, 1}, {30, 40}),
              make_tensor<int32_t>(DType::kI32, {1}, {2}), f32_tensor({1, 1, 1, 1}, {1}),
              f32_tensor({1, 1, 1, 1}, {20}), i64_tensor({1, 3}, {1, 1, 1})});
  expect_values(y.at(0), {1, 2, 1}, {25, 30});
  expect_values(y.at(1), {1, 1, 3, 1}, {20, 30, 40});
}

TEST(Contrib, rotary_embedding_begins_at_the_given_position) {
  ModelBuilder m;
  m.input("x", {1, 1, 2}).output("y");
  m.ints("start", {1}, {1});
  m.floats("cos", {2, 1}, {1, 0});
  m.floats("sin", {2, 1}, {0, 1});
  contrib(m.node("RotaryEmbedding", {"x", "start", "cos", "sin"}, {"y"}));
  expect_values(run(m, {f32_tensor({1, 1, 2}, {3, 5})}).at(0), {1, 1, 2}, {-5, 3});
}

// x0 <= 1 ? (x1 <= 0 ? 10 : 20) : 30, plus a tree of one leaf.
onnx::NodeProto& two_trees(onnx::NodeProto& node) {
  set_ints(node, "nodes_treeids", {0, 0, 0, 0, 0, 1});
  set_ints(node, "nodes_nodeids", {0, 1, 2, 3, 4, 0});
  set_ints(node, "nodes_featureids", {0, 1, 0, 0, 0, 0});
  set_floats(node, "nodes_values", {1, 0, 0, 0, 0, 0});
  set_strings(node, "nodes_modes", {"BRANCH_LEQ", "BRANCH_LEQ", "LEAF", "LEAF", "LEAF", "LEAF"});
  set_ints(node, "nodes_truenodeids", {1, 2, 0, 0, 0, 0});
  set_ints(node, "nodes_falsenodeids", {4, 3, 0, 0, 0, 0});
  return ml(node);
}

TEST(Contrib, svm_regressor_sums_kernels) {
  const double v[2][2] = {{1, 2}, {-1, 0.5}}, x[2] = {0.5, -2}, gamma = 0.5, coef0 = 1;
  for (const char* kernel : {"LINEAR", "POLY", "RBF", "SIGMOID"}) {
    ModelBuilder m;
    m.input("x", {-1, 2}, kFloat, {"n", ""}).output("y");
    onnx::NodeProto& node = ml(m.node("SVMRegressor", {"x"}, {"y"}));
    set_string(node, "kernel_type", kernel);
    set_floats(node, "kernel_params", {0.5, 1, 3});
    set_floats(node, "coefficients", {2, -3});
    set_floats(node, "support_vectors", {1, 2, -1, 0.5});
    set_floats(node, "rho", {0.25});
    set_int(node, "n_supports", 2);
    double sum = 0.25;
    for (int j = 0; j < 2; ++j) {
      double dot = x[0] * v[j][0] + x[1] * v[j][1];
      double apart = std::pow(x[0] - v[j][0], 2) + std::pow(x[1] - v[j][1], 2);
      double k = kernel[0] == 'L'   ? dot
                 : kernel[0] == 'P' ? std::pow(gamma * dot + coef0, 3)
                 : kernel[0] == 'R' ? std::exp(-gamma * apart)
                                    : std::tanh(gamma * dot + coef0);
      sum += (j == 0 ? 2 : -3) * k;
    }
    expect_values(run(m, {f32_tensor({1, 2}, {0.5, -2})}).at(0), {1, 1}, {sum});
  }
}

TEST(Contrib, tree_regressor_sums_the_trees) {
  ModelBuilder m;
  m.input("x", {4, 2}).output("y");
  onnx::NodeProto& node = two_trees(m.node("TreeEnsembleRegressor", {"x"}, {"y"}));
  set_ints(node, "target_treeids", {0, 0, 0, 1});
  set_ints(node, "target_nodeids", {2, 3, 4, 0});
  set_ints(node, "target_ids", {0, 0, 0, 0});
  set_floats(node, "target_weights", {10, 20, 30, 0.5});
  set_floats(node, "base_values", {100});
  Tensor x = f32_tensor({4, 2}, {1, 0, 0, 1, 2, 0, NAN, -1});
  expect_values(run(m, {x}).at(0), {4, 1}, {110.5, 120.5, 130.5, 130.5});
}

TEST(Contrib, trees_have_a_bounded_depth) {
  constexpr int kLevels = 258;
  ModelBuilder m;
  m.input("x", {1, 1}).output("y");
  onnx::NodeProto& node = ml(m.node("TreeEnsembleRegressor", {"x"}, {"y"}));
  std::vector<int64_t> zeros(2 * kLevels + 1, 0), ids, yes, no;
  std::vector<std::string> modes;
  for (int i = 0; i <= 2 * kLevels; ++i) {
    bool leaf = i >= kLevels;  // node i goes on to i + 1, or ends in a leaf
    ids.push_back(i);
    modes.push_back(leaf ? "LEAF" : "BRANCH_LEQ");
    yes.push_back(leaf ? 0 : i + 1);
    no.push_back(leaf ? 0 : kLevels + 1 + i);
  }
  set_ints(node, "nodes_treeids", zeros);
  set_ints(node, "nodes_nodeids", ids);
  set_ints(node, "nodes_featureids", zeros);
  set_floats(node, "nodes_values", std::vector<float>(zeros.size(), 0));
  set_strings(node, "nodes_modes", modes);
  set_ints(node, "nodes_truenodeids", yes);
  set_ints(node, "nodes_falsenodeids", no);
  set_ints(node, "target_treeids", {0});
  set_ints(node, "target_nodeids", {kLevels});
  set_ints(node, "target_ids", {0});
  set_floats(node, "target_weights", {1});
  Expected<ImportedModel> imported = m.import();
  ASSERT_FALSE(imported);
  EXPECT_NE(to_string(imported.errors()).find("trees of more than 256 levels are not supported"),
            std::string::npos);
}

TEST(Contrib, tree_ensemble_tests_membership) {
  ModelBuilder m;
  m.input("x", {4, 1}).output("y");
  onnx::NodeProto& node = ml(m.node("TreeEnsemble", {"x"}, {"y"}));
  auto tensor = [&](const char* name, int type, int64_t count) -> onnx::TensorProto& {
    onnx::TensorProto& t = *attribute(node, name, onnx::AttributeProto::TENSOR).mutable_t();
    t.set_data_type(type);
    t.add_dims(count);
    return t;
  };
  // Node 0: x in {1, 5} ? leaf 0 : node 1. Node 1: x < 3 ? leaf 1 : leaf 2.
  set_ints(node, "nodes_featureids", {0, 0});
  set_ints(node, "nodes_truenodeids", {0, 1});
  set_ints(node, "nodes_trueleafs", {1, 1});
  set_ints(node, "nodes_falsenodeids", {1, 2});
  set_ints(node, "nodes_falseleafs", {0, 1});
  onnx::TensorProto& modes = tensor("nodes_modes", 2, 2);
  for (int mode : {6, 1}) modes.add_int32_data(mode);
  onnx::TensorProto& splits = tensor("nodes_splits", kFloat, 2);
  for (float split : {0.0f, 3.0f}) splits.add_float_data(split);
  onnx::TensorProto& members = tensor("membership_values", kFloat, 3);
  for (float member : {1.0f, 5.0f, NAN}) members.add_float_data(member);
  onnx::TensorProto& weights = tensor("leaf_weights", kFloat, 3);
  for (float weight : {10.0f, 20.0f, 30.0f}) weights.add_float_data(weight);
  set_ints(node, "leaf_targetids", {0, 0, 0});
  set_ints(node, "tree_roots", {0});
  set_int(node, "n_targets", 1);
  expect_values(run(m, {f32_tensor({4, 1}, {1, 5, 2, 4})}).at(0), {4, 1}, {10, 10, 20, 30});
}

TEST(Contrib, label_encoder_has_a_default) {
  ModelBuilder m;
  m.input("x", {3}, kInt64).output("y");
  onnx::NodeProto& node = ml(m.node("LabelEncoder", {"x"}, {"y"}));
  set_ints(node, "keys_int64s", {7, 9});
  set_floats(node, "values_floats", {0.5, 1.5});
  set_float(node, "default_float", -2);
  expect_values(run(m, {i64_tensor({3}, {9, 8, 7})}).at(0), {3}, {1.5, -2, 0.5});
}

TEST(Contrib, one_hot_encoder_leaves_strangers_out) {
  ModelBuilder m;
  m.input("x", {2}, kInt64).output("y");
  set_ints(ml(m.node("OneHotEncoder", {"x"}, {"y"})), "cats_int64s", {3, 5});
  expect_values(run(m, {i64_tensor({2}, {5, 4})}).at(0), {2, 2}, {0, 1, 0, 0});
}

TEST(Contrib, tree_classifier_chooses_the_largest_sum) {
  ModelBuilder m;
  m.input("x", {3, 2}).output("label").output("scores");
  onnx::NodeProto& node = two_trees(m.node("TreeEnsembleClassifier", {"x"}, {"label", "scores"}));
  set_ints(node, "class_treeids", {0, 0, 0, 1});
  set_ints(node, "class_nodeids", {2, 3, 4, 0});
  set_ints(node, "class_ids", {0, 1, 2, 1});
  set_floats(node, "class_weights", {10, 20, 30, 15});
  set_ints(node, "classlabels_int64s", {7, 8, 9});
  std::vector<Tensor> y = run(m, {f32_tensor({3, 2}, {1, 0, 0, 1, 2, 0})});
  expect_values(y.at(0), {3}, {8, 8, 9});
  expect_values(y.at(1), {3, 3}, {10, 15, 0, 0, 35, 0, 0, 15, 30});
}

TEST(Contrib, linear_classifier_of_one_row_of_coefficients) {
  ModelBuilder m;
  m.input("x", {2, 2}).output("label").output("scores");
  onnx::NodeProto& node = ml(m.node("LinearClassifier", {"x"}, {"label", "scores"}));
  set_floats(node, "coefficients", {1, -1});
  set_floats(node, "intercepts", {0});
  set_ints(node, "classlabels_ints", {4, 5});
  set_string(node, "post_transform", "LOGISTIC");
  std::vector<Tensor> y = run(m, {f32_tensor({2, 2}, {2, 1, 0, 0})});
  double p = 1 / (1 + std::exp(-1.0));
  expect_values(y.at(0), {2}, {5, 4});
  expect_values(y.at(1), {2, 2}, {1 - p, p, 0.5, 0.5});
}

TEST(Contrib, scaler_and_imputer) {
  ModelBuilder m;
  m.input("x", {2, 2}).output("y");
  onnx::NodeProto& imputer = ml(m.node("Imputer", {"x"}, {"whole"}));
  set_floats(imputer, "imputed_value_floats", {1, 2});
  set_float(imputer, "replaced_value_float", NAN);
  onnx::NodeProto& scaler = ml(m.node("Scaler", {"whole"}, {"y"}));
  set_floats(scaler, "offset", {1});
  set_floats(scaler, "scale", {2, 3});
  expect_values(run(m, {f32_tensor({2, 2}, {NAN, NAN, 5, 6})}).at(0), {2, 2}, {0, 3, 8, 15});
}

}  // namespace
}  // namespace quernel::onnx_test
