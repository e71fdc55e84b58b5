// Small valid models which together use most importers: what fuzz_import mutates.
#pragma once

#include "model_builder.h"

namespace quernel::onnx_test {

inline onnx::ModelProto convolution_model() {
  ModelBuilder m(13);
  m.input("x", {1, 4, 8, 8}).output("y");
  m.floats("w", {4, 2, 3, 3}, std::vector<float>(72, 0.1f));
  m.floats("b", {4}, {1, 2, 3, 4});
  m.floats("wt", {4, 2, 2, 2}, std::vector<float>(32, 0.1f));
  auto& conv = m.node("Conv", {"x", "w", "b"}, {"c"});
  set_int(conv, "group", 2);
  set_ints(conv, "pads", {1, 1, 1, 1});
  set_ints(conv, "strides", {1, 1});
  m.node("BatchNormalization", {"c", "b", "b", "b", "b"}, {"n"});
  m.node("Relu", {"n"}, {"r"});
  auto& pool = m.node("MaxPool", {"r"}, {"p"});
  set_ints(pool, "kernel_shape", {3, 3});
  set_ints(pool, "strides", {2, 2});
  set_int(pool, "ceil_mode", 1);
  auto& average = m.node("AveragePool", {"p"}, {"a"});
  set_ints(average, "kernel_shape", {2, 2});
  set_string(average, "auto_pad", "SAME_UPPER");
  auto& up = m.node("ConvTranspose", {"a", "wt"}, {"t"});
  set_ints(up, "strides", {2, 2});
  set_int(m.node("LRN", {"t"}, {"l"}), "size", 3);
  m.node("GlobalAveragePool", {"l"}, {"g"});
  m.node("Flatten", {"g"}, {"f"});
  m.floats("k", {3, 2}, {1, 2, 3, 4, 5, 6});
  m.floats("d", {3}, {1, 1, 1});
  set_int(m.node("Gemm", {"f", "k", "d"}, {"h"}), "transB", 1);
  set_int(m.node("Softmax", {"h"}, {"y"}), "axis", 1);
  return m.model;
}

inline onnx::ModelProto attention_model() {
  ModelBuilder m(20);
  m.input("x", {2, 4, 8}).output("y").output("i");
  m.floats("s", {8}, std::vector<float>(8, 1));
  m.floats("w", {8, 24}, std::vector<float>(192, 0.1f));
  m.node("LayerNormalization", {"x", "s", "s"}, {"n"});
  m.node("MatMul", {"n", "w"}, {"qkv"});
  m.ints("parts", {3}, {8, 8, 8});
  set_int(m.node("Split", {"qkv", "parts"}, {"q", "k", "v"}), "axis", 2);
  set_ints(m.node("Transpose", {"k"}, {"kt"}), "perm", {0, 2, 1});
  m.node("MatMul", {"q", "kt"}, {"qk"});
  m.node("Softmax", {"qk"}, {"p"});
  set_string(m.node("Einsum", {"p", "v"}, {"o"}), "equation", "bij,bjd->bid");
  m.node("Gelu", {"o"}, {"ge"});
  m.node("Add", {"ge", "x"}, {"res"});
  m.ints("axes", {1}, {1});
  m.node("ReduceMean", {"res", "axes"}, {"mean"});
  m.ints("zero", {1}, {0});
  m.node("Gather", {"mean", "zero"}, {"y"});
  set_int(m.node("ArgMax", {"res"}, {"i"}), "axis", -1);
  return m.model;
}

inline onnx::ModelProto shapes_model() {
  ModelBuilder m(13);
  m.input("x", {2, 3, 4, 4}).output("y").output("z").output("u");
  m.node("Shape", {"x"}, {"shape"});
  m.ints("zero", {1}, {0});
  m.ints("one", {1}, {1});
  m.ints("minus", {1}, {-1});
  m.ints("two", {1}, {2});
  m.node("Slice", {"shape", "zero", "two", "zero", "one"}, {"head"});
  set_int(m.node("Concat", {"head", "minus"}, {"target"}), "axis", 0);
  m.node("Reshape", {"x", "target"}, {"r"});
  m.ints("pads", {6}, {0, 0, 1, 0, 0, 2});
  m.floats("fill", {}, {1});
  m.node("Pad", {"r", "pads", "fill"}, {"padded"});
  m.ints("last_but_one", {1}, {-2});
  m.node("Slice", {"padded", "minus", "last_but_one", "two", "minus"}, {"back"});
  m.ints("repeats", {3}, {1, 2, 3});
  m.node("Tile", {"padded", "repeats"}, {"tiled"});
  m.node("ConstantOfShape", {"head"}, {"zeros"});
  m.node("Unsqueeze", {"zeros", "two"}, {"wide"});
  m.node("Add", {"padded", "wide"}, {"y"});
  m.node("CumSum", {"tiled", "axis0"}, {"z"});
  m.ints("axis0", {}, {2});
  m.node("Squeeze", {"back", "two"}, {"u"});
  return m.model;
}

inline onnx::ModelProto resize_model() {
  ModelBuilder m(13);
  m.input("x", {1, 4, 3, 3}).output("y").output("h");
  m.floats("scales", {4}, {1, 1, 2, 1.5f});
  m.node("Resize", {"x", "", "scales"}, {"a"});
  m.ints("sizes", {4}, {1, 4, 5, 7});
  auto& linear = m.node("Resize", {"a", "", "", "sizes"}, {"b"});
  set_string(linear, "mode", "linear");
  set_string(linear, "coordinate_transformation_mode", "align_corners");
  auto& cubic = m.node("Resize", {"b", "", "", "sizes4"}, {"c"});
  set_string(cubic, "mode", "cubic");
  m.ints("sizes4", {4}, {1, 4, 4, 4});
  set_int(m.node("DepthToSpace", {"c"}, {"d"}), "blocksize", 2);
  set_int(m.node("SpaceToDepth", {"d"}, {"y"}), "blocksize", 4);
  m.ints("indices", {2, 1}, {0, -1});
  m.ints("depth", {1}, {3});
  m.floats("values", {2}, {0, 1});
  m.node("OneHot", {"indices", "depth", "values"}, {"h"});
  return m.model;
}

inline onnx::ModelProto nested_model() {
  ModelBuilder m(18);
  m.input("x", {2, 3}).output("y");
  auto& condition = *m.graph().add_initializer();
  condition.set_name("c");
  condition.set_data_type(kBool);
  condition.add_int32_data(1);
  auto& choice = m.node("If", {"c"}, {"t"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    onnx::GraphProto& g = set_graph(choice, branch);
    auto& inner = *g.add_node();
    inner.set_op_type("PRelu");
    inner.add_input("x");
    inner.add_input("x");
    inner.add_output("z");
    g.add_output()->set_name("z");
  }
  auto& function = *m.model.add_functions();
  function.set_name("F");
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  for (auto [op, in, out] : {std::tuple{"Mish", "a", "t"}, std::tuple{"HardSwish", "t", "b"}}) {
    auto& inner = *function.add_node();
    inner.set_op_type(op);
    inner.add_input(in);
    inner.add_output(out);
  }
  m.node("F", {"t"}, {"f"}).set_domain("own");
  m.floats("k", {}, {2});
  m.node("Pow", {"f", "k"}, {"p"});
  m.node("Greater", {"p", "k"}, {"g"});
  m.node("Where", {"g", "p", "x"}, {"w"});
  set_int(m.node("Trilu", {"w"}, {"tri"}), "upper", 0);
  set_int(m.node("Cast", {"tri"}, {"i"}), "to", kInt64);
  set_int(m.node("Cast", {"i"}, {"y"}), "to", kFloat);
  return m.model;
}

inline onnx::ModelProto ordered_model() {
  ModelBuilder m(26);
  m.input("x", {1, 1, 4, 6}).input("i", {1, 1, 4, 2}, kInt64).input("at", {1}, kInt64);
  for (const char* output : {"y", "c", "m", "v", "p"}) m.output(output);
  m.ints("axis", {}, {2});
  m.ints("k", {1}, {2});
  set_int(m.node("CumProd", {"x", "axis"}, {"prod"}), "reverse", 1);
  auto& top = m.node("TopK", {"prod", "k"}, {"v", "p"});
  set_int(top, "largest", 0);
  auto& elements = m.node("ScatterElements", {"x", "i", "v"}, {"e"});
  set_int(elements, "axis", -1);
  set_string(elements, "reduction", "max");
  m.node("TensorScatter", {"e", "v6", "at"}, {"t"});
  m.floats("v6", {1, 1, 2, 6}, std::vector<float>(12, 1.0f));
  set_string(m.node("ScatterND", {"t", "tuples", "row"}, {"y"}), "reduction", "add");
  m.ints("tuples", {2, 3}, {0, 0, 1, 0, 0, -1});
  m.floats("row", {2, 6}, std::vector<float>(12, 2.0f));
  m.ints("image", {2}, {5, 5});
  m.ints("block", {2}, {2, 2});
  set_ints(m.node("Col2Im", {"columns", "image", "block"}, {"c"}), "strides", {3, 3});
  m.node("RandomNormalLike", {"noise"}, {"columns"});
  m.floats("noise", {1, 8, 4}, std::vector<float>(32));
  auto& unpool = m.node("MaxUnpool", {"bits", "places"}, {"m"});
  set_ints(unpool, "kernel_shape", {2});
  set_ints(unpool, "strides", {2});
  m.ints("places", {1, 1, 3}, {0, 3, 5});
  m.node("Bernoulli", {"half"}, {"bits"});
  m.floats("half", {1, 1, 3}, {0.5f, 0.5f, 0.5f});
  return m.model;
}

inline std::vector<onnx::ModelProto> seed_models() {
  return {convolution_model(), attention_model(), shapes_model(),
          resize_model(),      nested_model(),    ordered_model()};
}

}  // namespace quernel::onnx_test
