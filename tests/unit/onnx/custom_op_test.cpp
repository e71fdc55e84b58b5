// Nodes that the user has described become custom ops: shapes, free dims, attributes, and what is refused.
#include "graph/print_parts.h"
#include "graph/text.h"
#include "run_model.h"

namespace quernel::onnx_test {
namespace {

ImportOptions described(const std::string& text) {
  ImportOptions options;
  Expected<std::vector<CustomOpDescription>> ops = parse_custom_ops(text, "ops.op");
  if (!ops) throw std::runtime_error(to_string(ops.errors()));
  options.custom_ops = std::move(*ops);
  return options;
}

onnx::NodeProto& in_domain(onnx::NodeProto& node, const std::string& domain = "demo") {
  node.set_domain(domain);
  return node;
}

// The custom node of the imported model, as text.
std::string custom_text(const ModelBuilder& m, const ImportOptions& options) {
  Expected<ImportedModel> imported = m.import(options);
  if (!imported) return to_string(imported.errors());
  if (Status ok = verify(imported->graph); !ok) return to_string(ok.errors());
  std::string text;
  for (const Node& node : imported->graph.nodes)
    if (node.op == OpKind::k_custom) text += (text.empty() ? "" : "\n") + attributes_text(node);
  return text;
}

TEST(CustomOps, results_have_the_described_types) {
  ModelBuilder m;
  m.input("x", {3, 4}).input("w", {4, 7}).output("y").output("n");
  in_domain(m.node("Pair", {"x", "w"}, {"y", "n"}));
  EXPECT_EQ(custom_text(
                m, described("op \"demo::Pair\" (x: f32[r, n], w: f32[n, k]) -> (y: f32[r, k], n: i64[1])")),
            "\"demo::Pair\" \"\" gives f32[3,7], i64[1]");
}

TEST(CustomOps, attributes_in_their_text_form) {
  ModelBuilder m;
  m.input("x", {3}).output("y");
  onnx::NodeProto& node = in_domain(m.node("Op", {"x"}, {"y"}));
  set_int(node, "size", -4);
  set_float(node, "alpha", 0.1f);
  set_float(node, "two", 2);
  set_string(node, "mode", "a\"b\n;c");
  set_ints(node, "axes", {1, -2});
  onnx::AttributeProto& floats = attribute(node, "floats", onnx::AttributeProto::FLOATS);
  floats.add_floats(1e-9f);
  floats.add_floats(-3);
  attribute(node, "strings", onnx::AttributeProto::STRINGS).add_strings("x,y");
  EXPECT_EQ(
      custom_text(m, described("op \"demo::Op\" (x: f32[n]) -> (y: f32[n])")),
      "\"demo::Op\" \"alpha=0.1;axes=[1,-2];floats=[1e-09,-3.0];mode=\\\"a\\\\\\\"b\\\\x0a;c\\\";size=-4;"
      "strings=[\\\"x,y\\\"];two=2.0\" gives f32[3]");
  attribute(node, "table", onnx::AttributeProto::TENSOR);
  std::string errors = custom_text(m, described("op \"demo::Op\" (x: f32[n]) -> (y: f32[n])"));
  EXPECT_NE(errors.find(
                "attribute 'table' of a custom op: expected integers, floats or strings, found another type"),
            std::string::npos)
      << errors;
}

// Free dims go through; two that the description has by one name are assumed to be equal.
TEST(CustomOps, free_dims) {
  ModelBuilder m;
  m.input("x", {-1, -1}, kFloat, {"batch", "a"}).input("w", {-1}, kFloat, {"b"}).output("y");
  in_domain(m.node("Op", {"x", "w"}, {"y"}));
  EXPECT_EQ(custom_text(m, described("op \"demo::Op\" (x: f32[r, n], w: f32[n]) -> (y: f32[n, (r * 2)])")),
            "\"demo::Op\" \"\" gives f32[a,(batch * 2)]");
  EXPECT_EQ(custom_text(m, described("op \"demo::Op\" (x: f32[r, 4], w: f32[n]) -> (y: f32[n, (r * 2)])")),
            "\"demo::Op\" \"\" gives f32[b,(batch * 2)]");
}

TEST(CustomOps, a_description_comes_before_operators_and_functions) {
  ModelBuilder m;
  m.input("x", {3}).output("y");
  m.node("Relu", {"x"}, {"a"});
  in_domain(m.node("Twice", {"a"}, {"y"}));
  auto& function = *m.model.add_functions();
  function.set_name("Twice");
  function.set_domain("demo");
  function.add_input("v");
  function.add_output("w");
  onnx::NodeProto& add = *function.add_node();
  add.set_op_type("Add");
  add.add_input("v");
  add.add_input("v");
  add.add_output("w");
  EXPECT_EQ(custom_text(m, {}), "");
  EXPECT_EQ(custom_text(m, described("op \"Relu\" (x: f32[n]) -> (y: f32[n])\n"
                                     "op \"demo::Twice\" (x: f32[n]) -> (y: f32[n])")),
            "\"Relu\" \"\" gives f32[3]\n\"demo::Twice\" \"\" gives f32[3]");
}

TEST(CustomOps, in_the_body_of_a_loop) {
  ModelBuilder m;
  m.input("x", {3}).input("n", {}, kInt64).output("y");
  onnx::GraphProto body;
  for (const char* name : {"i", "go", "v"}) body.add_input()->set_name(name);
  for (const char* name : {"go", "w"}) body.add_output()->set_name(name);
  onnx::NodeProto& op = *body.add_node();
  op.set_op_type("Op");
  op.set_domain("demo");
  op.add_input("v");
  op.add_output("w");
  *attribute(m.node("Loop", {"n", "", "x"}, {"y"}), "body", onnx::AttributeProto::GRAPH).mutable_g() = body;
  Expected<ImportedModel> imported = m.import(described("op \"demo::Op\" (x: f32[n]) -> (y: f32[n])"));
  ASSERT_TRUE(imported) << to_string(imported.errors());
  CustomFunctions functions = {
      {"demo::Op", [](const CustomOp&, const std::vector<const Tensor*>& x) -> Expected<std::vector<Tensor>> {
         std::vector<float> twice;
         for (int64_t i = 0; i < x[0]->count(); ++i) twice.push_back(2 * x[0]->at<float>(i));
         return std::vector<Tensor>{f32_tensor(x[0]->dims, twice)};
       }}};
  Expected<std::vector<Tensor>> outputs =
      interpret(imported->graph, {f32_tensor({3}, {1, 2, 3}), i64_tensor({}, {4})}, {}, functions);
  ASSERT_TRUE(outputs) << to_string(outputs.errors());
  expect_values((*outputs)[0], {3}, {16, 32, 48});
}

TEST(CustomOps, what_does_not_fit_its_description) {
  ModelBuilder m;
  m.input("x", {3}).output("y").output("z");
  in_domain(m.node("Op", {"x", "", "x"}, {"y", "z"}), "demo");
  auto expect = [&](const std::string& text, const std::string& part) {
    std::string errors = custom_text(m, text.empty() ? ImportOptions{} : described(text));
    EXPECT_NE(errors.find(part), std::string::npos) << errors;
  };
  expect("", "operator Op of domain 'demo' is not supported");
  expect("", "describe the operator to compute it yourself: --custom-op FILE");
  expect("op \"demo::Op\" (x: f32[n], y: f32[n]) -> (y: f32[n])", "expected at most 2 inputs, found 3");
  expect("op \"demo::Op\" (x: f32[n], y: f32[n], z: f32[n]) -> (y: f32[n])",
         "expected at least 3 inputs, found input 1 missing");
  m.graph().mutable_node(0)->mutable_input()->DeleteSubrange(1, 2);
  expect("op \"demo::Op\" (x: f32[n]) -> (y: f32[n])",
         "custom op 'demo::Op': expected at most 1 outputs, found 2");
  expect("op \"demo::Op\" (x: i8[n]) -> (y: f32[n], z: f32[])",
         "input 'x' of custom op 'demo::Op': expected i8[n], found f32[3]");
}

TEST(CustomOps, a_description_without_nodes_is_noted) {
  ModelBuilder m;
  m.input("x", {3}).output("y");
  m.node("Relu", {"x"}, {"y"});
  Expected<ImportedModel> imported = m.import(described("op \"demo::Op\" (x: f32[n]) -> (y: f32[n])"));
  ASSERT_TRUE(imported);
  EXPECT_EQ(imported->notes,
            std::vector<std::string>{"custom op 'demo::Op' is described, but no node of the model is one"});
}

}  // namespace
}  // namespace quernel::onnx_test
