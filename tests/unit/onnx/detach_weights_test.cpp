// Large tensors that stay in the model's file: the same values as through protobuf, the same errors.
#include "frontends/onnx/detach_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "frontends/onnx/read_model.h"
#include "graph/print_parts.h"
#include "graph/text.h"
#include "model_builder.h"

namespace quernel::onnx_test {
namespace {

constexpr int64_t kRows = 200, kColumns = 100;  // more than what is left in the message

std::string raw_floats(float first) {
  std::vector<float> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

void set_raw(onnx::TensorProto& tensor, float first) {
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.clear_dims();
  tensor.clear_float_data();
  tensor.add_dims(kRows);
  tensor.add_dims(kColumns);
  tensor.set_raw_data(raw_floats(first));
}

// A large initializer, a large Constant, a large initializer of an If's branch, and a small initializer.
onnx::ModelProto model_with_weights() {
  ModelBuilder m;
  m.input("x", {kRows, kColumns}).output("y");
  set_raw(m.floats("w", {1}, {}), 1);
  m.floats("s", {1}, {2});
  onnx::NodeProto& constant = m.node("Constant", {}, {"c"});
  onnx::AttributeProto* value = constant.add_attribute();
  value->set_name("value");
  value->set_type(onnx::AttributeProto::TENSOR);
  set_raw(*value->mutable_t(), 2);
  m.node("Add", {"x", "w"}, {"xw"});
  m.node("Add", {"xw", "c"}, {"xwc"});
  m.node("Mul", {"xwc", "s"}, {"y"});
  return m.model;
}

class DetachWeights : public testing::Test {
 protected:
  void SetUp() override {
    path = std::filesystem::path(testing::TempDir()) /
           ("quernel_detach_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
            ".onnx");
  }
  void TearDown() override { std::filesystem::remove(path); }
  void store(const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

  std::filesystem::path path;
};

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string constants_of(const Graph& graph) {
  std::string all;
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::k_constant) {
      const Bytes& bytes = node.attributes.tensor.bytes;
      all += type_text(graph.type(node.output)) + ":" +
             std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  return all;
}

TEST_F(DetachWeights, leaves_no_large_tensor_in_the_message) {
  const std::string model = model_with_weights().SerializeAsString();
  std::optional<std::string> light = onnx_import::detach_weights(bytes_of(model));
  ASSERT_TRUE(light);
  EXPECT_LT(light->size(), 2000u);
  onnx::ModelProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(*light));
  EXPECT_EQ(parsed.graph().node_size(), 4);
}

TEST_F(DetachWeights, gives_the_graph_of_the_whole_message) {
  const std::string model = model_with_weights().SerializeAsString();
  store(model);
  Expected<ImportedModel> whole = import_onnx_bytes(bytes_of(model), path.string(), {});
  Expected<ImportedModel> detached = import_onnx(path.string(), {});
  ASSERT_TRUE(whole) << to_string(whole.errors());
  ASSERT_TRUE(detached) << to_string(detached.errors());
  EXPECT_EQ(print(detached->graph, 10), print(whole->graph, 10));
  const std::string constants = constants_of(whole->graph);
  EXPECT_GT(constants.size(), 2 * kRows * kColumns * sizeof(float));
  EXPECT_TRUE(constants_of(detached->graph) == constants);  // not EXPECT_EQ: it would print them
}

TEST_F(DetachWeights, data_that_do_not_fit_the_dims_are_called_bytes) {
  onnx::ModelProto model = model_with_weights();
  model.mutable_graph()->mutable_initializer(0)->mutable_raw_data()->pop_back();
  store(model.SerializeAsString());
  Expected<ImportedModel> imported = import_onnx(path.string(), {});
  ASSERT_FALSE(imported);
  EXPECT_NE(to_string(imported.errors()).find("tensor 'w': expected 80000 bytes for its dims, found 79999"),
            std::string::npos)
      << to_string(imported.errors());
}

TEST_F(DetachWeights, leaves_small_and_strange_messages_to_protobuf) {
  onnx::ModelProto small = model_with_weights();
  small.mutable_graph()->mutable_initializer(0)->set_raw_data("1234");
  small.mutable_graph()->mutable_node(0)->clear_attribute();
  EXPECT_FALSE(onnx_import::detach_weights(bytes_of(small.SerializeAsString())));
  onnx::ModelProto both = model_with_weights();
  both.mutable_graph()->mutable_initializer(0)->set_data_location(onnx::TensorProto::EXTERNAL);
  EXPECT_FALSE(onnx_import::detach_weights(bytes_of(both.SerializeAsString())));
  std::string cut = model_with_weights().SerializeAsString();
  cut.resize(cut.size() / 2);
  EXPECT_FALSE(onnx_import::detach_weights(bytes_of(cut)));
  EXPECT_FALSE(onnx_import::detach_weights({}));
}

}  // namespace
}  // namespace quernel::onnx_test
