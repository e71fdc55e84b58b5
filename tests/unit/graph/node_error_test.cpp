// Nodes that no text can say: the op rules refuse what a pass or a frontend makes wrong.
#include <gtest/gtest.h>

#include "graph/build.h"
#include "graph_testing.h"

namespace quernel {
namespace {

std::string error_of(const Expected<ValueId>& value) {
  return value ? "no error" : value.errors().front().message;
}

TEST(NodeErrors, constants) {
  Graph graph;
  Attributes attributes;
  attributes.tensor = {DType::kF32, {2}, Bytes::own({1, 2, 3})};
  EXPECT_NE(error_of(graph.add(OpKind::k_constant, {}, attributes)).find("expected 8 bytes of data, found 3"),
            std::string::npos);
  attributes.tensor.dims = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_NE(error_of(graph.add(OpKind::k_constant, {}, attributes))
                .find("expected dims whose product fits 63 bits"),
            std::string::npos);
}

TEST(NodeErrors, reduction_axes_before_output_axes) {
  Graph graph;
  ValueId x = graph.add_input("x", {DType::kF32, {2, 2}}, {});
  Attributes attributes;
  Contraction& c = attributes.contraction;
  c.axes = {{"k", 2, true}, {"m", 2, false}};
  c.a = c.b = {IndexExpr::axis(1), IndexExpr::axis(0)};
  c.out = {IndexExpr::axis(1)};
  EXPECT_NE(error_of(graph.add(OpKind::k_contract, {x, x}, attributes))
                .find("expected output axes before reduction axes"),
            std::string::npos);
}

TEST(NodeErrors, broadcasts) {
  Graph graph;
  ValueId x = graph.add_input("x", {DType::kF32, {2, 2}}, {});
  GraphBuilder build(graph);
  build.broadcast_to(x, {2});
  Status status = build.take_status();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.errors().front().message, "expected a shape that broadcasts to [2], found [2,2]");
}

TEST(NodeErrors, tensors_too_large_to_interpret) {
  Graph graph = graph_of("graph @g(%x: f32[1]) {\n  %y = expand %x : f32[68719476736]\n  return y = %y\n}\n");
  Expected<std::vector<Tensor>> outputs = interpret(graph, {f32_tensor({1}, {1})});
  ASSERT_FALSE(outputs);
  EXPECT_NE(outputs.errors().front().message.find("the interpreter's tensors are limited to"),
            std::string::npos);
}

// No input has the symbol as a dim, and the caller names no value for it.
TEST(NodeErrors, symbols_without_a_value) {
  for (const char* node : {"expand %x : f32[n]", "dims [n] : i64[1]"}) {
    Expected<Graph> graph = parse_graph(
        "symbol n max=8\ngraph @g(%x: f32[1]) {\n  %y = " + std::string(node) + "\n  return y = %y\n}\n");
    ASSERT_TRUE(graph) << to_string(graph.errors());
    Expected<std::vector<Tensor>> outputs = interpret(*graph, {f32_tensor({1}, {1})});
    ASSERT_FALSE(outputs) << node;
    EXPECT_NE(
        outputs.errors().front().message.find("the interpreter expects the value of every symbol, found "),
        std::string::npos);
  }
}

TEST(NodeErrors, custom_ops) {
  Graph graph = graph_of(
      "graph @g(%x: f32[1]) {\n  %t = custom %x \"demo::Op\" \"\" gives f32[1]\n  %y = result %t {0} : "
      "f32[1]\n"
      "  return y = %y\n}\n");
  Expected<std::vector<Tensor>> outputs = interpret(graph, {f32_tensor({1}, {1})});
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.errors().front().message, "the interpreter does not know custom op 'demo::Op'");
  Attributes attributes;
  attributes.custom = std::make_shared<CustomOp>(CustomOp{"demo::Op", "", {}});
  Expected<ValueId> token = graph.add(OpKind::k_custom, {}, attributes);
  ASSERT_FALSE(token);
  EXPECT_EQ(token.errors().front().message, "custom: 'demo::Op': expected at least one result");
}

}  // namespace
}  // namespace quernel
