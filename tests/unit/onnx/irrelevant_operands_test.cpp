// Operands that another operand or an attribute makes irrelevant need not be known: as inputs of the model,
// with any value, they change nothing.
#include <cmath>
#include <functional>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

struct Case {
  std::string name;
  int64_t opset;
  std::string operand;  // the irrelevant one
  Tensor value;         // what it is as a constant
  Tensor other;         // what it is as an input
  std::vector<std::pair<std::string, Tensor>> inputs;
  std::function<void(ModelBuilder&)> build;  // gives y
};

int onnx_type(DType dtype) {
  return dtype == DType::kF32 ? kFloat : dtype == DType::kI64 ? kInt64 : dtype == DType::kBool ? kBool : 6;
}

void add_constant(ModelBuilder& m, const std::string& name, const Tensor& tensor) {
  onnx::TensorProto& proto = *m.graph().add_initializer();
  proto.set_name(name);
  proto.set_data_type(onnx_type(tensor.dtype));
  for (int64_t d : tensor.dims) proto.add_dims(d);
  proto.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
}

void check(const Case& c) {
  SCOPED_TRACE(c.name);
  std::vector<Tensor> results[2];
  for (bool as_input : {false, true}) {
    ModelBuilder m(c.opset);
    std::vector<Tensor> inputs;
    for (const auto& [name, tensor] : c.inputs) {
      m.input(name, tensor.dims, onnx_type(tensor.dtype));
      inputs.push_back(tensor);
    }
    if (as_input) {
      m.input(c.operand, c.other.dims, onnx_type(c.other.dtype));
      inputs.push_back(c.other);
    } else {
      add_constant(m, c.operand, c.value);
    }
    m.output("y");
    c.build(m);
    results[as_input] = run(m, inputs);
  }
  ASSERT_EQ(results[0].size(), 1u);
  ASSERT_EQ(results[1].size(), 1u);
  EXPECT_EQ(results[1][0].dims, results[0][0].dims);
  ASSERT_EQ(results[1][0].bytes.size(), results[0][0].bytes.size());
  for (int64_t i = 0; i < results[0][0].count(); ++i)
    EXPECT_EQ(element_as_f64(results[1][0], i), element_as_f64(results[0][0], i)) << i;
}

Tensor flag(bool value) { return make_tensor<uint8_t>(DType::kBool, {}, {static_cast<uint8_t>(value)}); }
Tensor scalar(float value) { return f32_tensor({}, {value}); }
Tensor row(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(3.0 * static_cast<double>(i))));
  return f32_tensor({count}, values);
}
Tensor matrix(int64_t rows, int64_t columns) {
  Tensor t = row(rows * columns);
  t.dims = {rows, columns};
  return t;
}
Tensor with_dims(Tensor t, std::vector<int64_t> dims) {
  t.dims = std::move(dims);
  return t;
}

TEST(IrrelevantOperands, dropout) {
  auto dropout = [](std::vector<std::string> operands) {
    return [operands](ModelBuilder& m) {
      add_constant(m, "off", flag(false));
      add_constant(m, "nothing", scalar(0));
      m.node("Dropout", operands, {"y"});
    };
  };
  for (int64_t opset : {12, 13, 22}) {
    check({"ratio_without_training",
           opset,
           "ratio",
           scalar(0.5f),
           scalar(0.9f),
           {{"x", row(6)}},
           dropout({"x", "ratio", "off"})});
    check({"ratio_alone",
           opset,
           "ratio",
           scalar(0.5f),
           scalar(0.9f),
           {{"x", row(6)}},
           dropout({"x", "ratio"})});
    check({"training_without_ratio",
           opset,
           "training",
           flag(false),
           flag(true),
           {{"x", row(6)}},
           dropout({"x", "nothing", "training"})});
  }
}

TEST(IrrelevantOperands, dropout_in_training_is_still_refused) {
  ModelBuilder m;
  m.input("x", {3}).input("ratio", {}).output("y");
  add_constant(m, "on", flag(true));
  m.node("Dropout", {"x", "ratio", "on"}, {"y"});
  EXPECT_FALSE(m.import());
}

TEST(IrrelevantOperands, resize) {
  auto resize = [](std::vector<std::string> operands, const char* coordinates) {
    return [=](ModelBuilder& m) {
      m.floats("two", {2}, {2, 2});
      m.ints("to", {2}, {4, 3});
      onnx::NodeProto& node = m.node("Resize", operands, {"y"});
      set_string(node, "mode", "linear");
      set_string(node, "coordinate_transformation_mode", coordinates);
    };
  };
  Tensor roi = f32_tensor({4}, {0, 0, 1, 1}), other = f32_tensor({4}, {5, 6, 7, 8});
  for (int64_t opset : {11, 13, 19})
    for (const char* coordinates : {"half_pixel", "align_corners"}) {
      check(
          {"roi", opset, "roi", roi, other, {{"x", matrix(2, 3)}}, resize({"x", "roi", "two"}, coordinates)});
      check({"roi_of_sizes",
             opset,
             "roi",
             roi,
             other,
             {{"x", matrix(2, 3)}},
             resize({"x", "roi", "", "to"}, coordinates)});
    }
}

TEST(IrrelevantOperands, pads) {
  auto pad = [](const char* mode, std::vector<int64_t> pads) {
    return [=](ModelBuilder& m) {
      m.ints("pads", {2}, pads);
      set_string(m.node("Pad", {"x", "pads", "fill"}, {"y"}), "mode", mode);
    };
  };
  for (const char* mode : {"edge", "reflect"})
    check({mode, 18, "fill", scalar(0), scalar(9), {{"x", row(5)}}, pad(mode, {1, 2})});
  check({"none", 18, "fill", scalar(0), scalar(9), {{"x", row(5)}}, pad("constant", {0, 0})});
  check({"cut", 18, "fill", scalar(0), scalar(9), {{"x", row(5)}}, pad("constant", {-1, 0})});
}

TEST(IrrelevantOperands, axes_and_shapes_that_rank_decides) {
  check({"cum_sum",
         14,
         "axis",
         i64_tensor({}, {0}),
         i64_tensor({}, {-1}),
         {{"x", row(5)}},
         [](ModelBuilder& m) {
           m.node("CumSum", {"x", "axis"}, {"y"});
         }});
  for (const char* op : {"ReduceSum", "ReduceMax", "ReduceL2"})
    for (int keep : {0, 1})
      check({op,
             18,
             "axes",
             i64_tensor({2}, {0, 1}),
             i64_tensor({2}, {-1, 0}),
             {{"x", matrix(2, 3)}},
             [=](ModelBuilder& m) {
               set_int(m.node(op, {"x", "axes"}, {"y"}), "keepdims", keep);
             }});
  check({"reshape_to_a_vector",
         14,
         "shape",
         i64_tensor({1}, {-1}),
         i64_tensor({1}, {6}),
         {{"x", matrix(2, 3)}},
         [](ModelBuilder& m) {
           m.node("Reshape", {"x", "shape"}, {"y"});
         }});
  check({"split_into_one",
         17,
         "split",
         i64_tensor({1}, {5}),
         i64_tensor({1}, {5}),
         {{"x", row(5)}},
         [](ModelBuilder& m) {
           m.node("Split", {"x", "split"}, {"y"});
         }});
}

TEST(IrrelevantOperands, axes_that_are_all_there_are) {
  check({"squeeze",
         17,
         "axes",
         i64_tensor({2}, {0, 1}),
         i64_tensor({2}, {-1, 0}),
         {{"x", matrix(1, 1)}},
         [](ModelBuilder& m) {
           m.node("Squeeze", {"x", "axes"}, {"y"});
         }});
  check({"unsqueeze",
         17,
         "axes",
         i64_tensor({2}, {0, 1}),
         i64_tensor({2}, {1, 0}),
         {{"x", scalar(3)}},
         [](ModelBuilder& m) {
           m.node("Unsqueeze", {"x", "axes"}, {"y"});
         }});
  check({"no_axes",
         18,
         "axes",
         i64_tensor({0}, {}),
         i64_tensor({0}, {}),
         {{"x", matrix(2, 3)}},
         [](ModelBuilder& m) {
           set_int(m.node("ReduceSum", {"x", "axes"}, {"y"}), "noop_with_empty_axes", 1);
         }});
  check({"no_dims",
         18,
         "shape",
         i64_tensor({0}, {}),
         i64_tensor({0}, {}),
         {{"x", row(1)}},
         [](ModelBuilder& m) {
           m.node("Reshape", {"x", "shape"}, {"y"});
         }});
}

TEST(IrrelevantOperands, loops_that_never_run) {
  // The body doubles a vector's length, which only an unrolled loop can do.
  auto loop = [](bool known_count) {
    return [known_count](ModelBuilder& m) {
      m.ints("none", {}, {0});
      add_constant(m, "stop", flag(false));
      onnx::NodeProto& node =
          m.node("Loop", {known_count ? "none" : "count", known_count ? "go" : "stop", "x"}, {"y"});
      onnx::GraphProto& body = set_graph(node, "body");
      body.set_name("body");
      ModelBuilder::describe(*body.add_input(), "i", {}, kInt64);
      ModelBuilder::describe(*body.add_input(), "c", {}, kBool);
      ModelBuilder::describe(*body.add_input(), "v", {-1}, kFloat);
      onnx::NodeProto& twice = *body.add_node();
      twice.set_op_type("Concat");
      twice.add_input("v");
      twice.add_input("v");
      twice.add_output("w");
      set_int(twice, "axis", 0);
      body.add_output()->set_name("c");
      body.add_output()->set_name("w");
    };
  };
  check({"condition", 17, "go", flag(true), flag(true), {{"x", row(3)}}, loop(true)});
  check({"count", 17, "count", i64_tensor({}, {4}), i64_tensor({}, {4}), {{"x", row(3)}}, loop(false)});
}

TEST(IrrelevantOperands, branches_and_choices) {
  // The other branch needs to know its operand.
  check({"if",
         17,
         "shape",
         i64_tensor({2}, {3, 2}),
         i64_tensor({2}, {2, 3}),
         {{"x", row(6)}},
         [](ModelBuilder& m) {
           add_constant(m, "no", flag(false));
           onnx::NodeProto& node = m.node("If", {"no"}, {"y"});
           for (const char* name : {"then_branch", "else_branch"}) {
             onnx::GraphProto& branch = set_graph(node, name);
             branch.set_name(name);
             bool reshapes = name == std::string("then_branch");
             onnx::NodeProto& inner = *branch.add_node();
             inner.set_op_type(reshapes ? "Reshape" : "Neg");
             inner.add_input("x");
             if (reshapes) inner.add_input("shape");
             inner.add_output(std::string(name) + "_y");
             branch.add_output()->set_name(std::string(name) + "_y");
           }
         }});
}

TEST(IrrelevantOperands, suppression_without_boxes) {
  auto suppression = [](ModelBuilder& m) {
    m.ints("none", {1}, {0});
    m.node("NonMaxSuppression", {"boxes", "scores", "none", "threshold"}, {"y"});
  };
  check({"threshold",
         11,
         "threshold",
         f32_tensor({1}, {0.5f}),
         f32_tensor({1}, {0.9f}),
         {{"boxes", with_dims(row(8), {1, 2, 4})}, {"scores", with_dims(row(2), {1, 1, 2})}},
         suppression});
}

TEST(IrrelevantOperands, frames_of_a_given_window) {
  check({"frame_length",
         17,
         "length",
         i64_tensor({}, {4}),
         i64_tensor({}, {4}),
         {{"x", with_dims(row(9), {1, 9, 1})}},
         [](ModelBuilder& m) {
           m.ints("step", {}, {2});
           m.floats("window", {4}, {1, 2, 2, 1});
           m.node("STFT", {"x", "step", "window", "length"}, {"y"});
         }});
}

TEST(IrrelevantOperands, attention_without_a_past) {
  auto contrib = [](ModelBuilder& m, onnx::NodeProto& node) {
    node.set_domain("com.microsoft");
    auto* import = m.model.add_opset_import();
    import->set_domain("com.microsoft");
    import->set_version(1);
  };
  Tensor three = make_tensor<int32_t>(DType::kI32, {1}, {3});
  check({"total_sequence_length",
         17,
         "total",
         three,
         three,
         {{"q", with_dims(row(12), {1, 3, 4})}, {"k", with_dims(row(6), {1, 3, 2})}},
         [=](ModelBuilder& m) {
           add_constant(m, "lengths", make_tensor<int32_t>(DType::kI32, {1}, {2}));
           onnx::NodeProto& node =
               m.node("GroupQueryAttention", {"q", "k", "k", "", "", "lengths", "total"}, {"y"});
           set_int(node, "num_heads", 2);
           set_int(node, "kv_num_heads", 1);
           contrib(m, node);
         }});
  check({"past_sequence_length",
         17,
         "past_length",
         three,
         three,
         {{"x", with_dims(row(12), {1, 3, 4})}},
         [=](ModelBuilder& m) {
           m.floats("w", {4, 12}, std::vector<float>(48, 0.1f));
           onnx::NodeProto& node = m.node("Attention", {"x", "w", "", "", "", "", "past_length"}, {"y"});
           set_int(node, "num_heads", 2);
           contrib(m, node);
         }});
}

}  // namespace
}  // namespace quernel::onnx_test
