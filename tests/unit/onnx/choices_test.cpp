// The table of compiler/ops/CHOICES.md: what Quernel does where ONNX leaves a choice, the same folded,
// interpreted and compiled. All rows are nodes of one model. Over 600 lines because it is one table.
#include <gtest/gtest.h>
#include <onnx/defs/parser.h>

#include <cmath>
#include <limits>

#include "graph/build.h"
#include "graph/passes/passes.h"
#include "run_compiled.h"
#include "run_model.h"

namespace quernel::onnx_test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInf = std::numeric_limits<double>::infinity();
constexpr double kI32Min = -0x1p31, kI32Max = 0x1p31 - 1, kI64Min = -0x1p63, kI64Max = 0x1p63;
constexpr double kU32Max = 0x1p32 - 1, kU64Max = 0x1p64;

// Numbers as any dtype holds them; integers need not fit i64.
Tensor tensor(DType dtype, std::vector<int64_t> dims, const std::vector<double>& values) {
  Tensor wide = make_tensor<double>(DType::kF64, dims, values);
  if (dtype == DType::kF64) return wide;
  Graph graph;
  GraphBuilder build(graph);
  ValueId x = graph.add_input("x", {DType::kF64, make_shape(dims)});
  graph.outputs.push_back({"y", build.cast(x, dtype)});
  return interpret(graph, {wide})->at(0);
}
Tensor f32(const std::vector<double>& values) {
  return tensor(DType::kF32, {static_cast<int64_t>(values.size())}, values);
}
Tensor f32(std::vector<int64_t> dims, const std::vector<double>& values) {
  return tensor(DType::kF32, std::move(dims), values);
}
Tensor i32(const std::vector<double>& values) {
  return tensor(DType::kI32, {static_cast<int64_t>(values.size())}, values);
}
Tensor i64(const std::vector<double>& values) {
  return tensor(DType::kI64, {static_cast<int64_t>(values.size())}, values);
}
Tensor scalar(DType dtype, double value) { return tensor(dtype, {}, {value}); }

struct Row {
  std::string name;
  std::string nodes;  // of operands a, b, c, …, "none" for one that is left out; results y, or y, z, …
  std::vector<Tensor> operands;
  std::vector<std::vector<double>> results;  // a zero with a sign demands that sign
  std::string known = {};                    // operands that are constants always
};

// ---- the table

const std::vector<double> kWild = {kNan, kInf, -kInf, 300,   -300, 128, -129,
                                   3e9,  -3e9, 1e20,  -1e20, -0.9, 1.9};

std::vector<Row> cast_rows() {
  auto clamped = [](double low, double high) {
    std::vector<double> y;
    for (double x : kWild)
      y.push_back(std::isnan(x) ? 0 : std::trunc(std::min(std::max(x, low), high)) + 0.0);
    return std::vector<std::vector<double>>{y};
  };
  return {
      {"to_i8", "y = Cast <to = 3> (a)", {f32(kWild)}, clamped(-128, 127)},
      {"to_u8", "y = Cast <to = 2> (a)", {f32(kWild)}, clamped(0, 255)},
      {"to_i16", "y = Cast <to = 5> (a)", {f32(kWild)}, clamped(-32768, 32767)},
      {"to_u16", "y = Cast <to = 4> (a)", {f32(kWild)}, clamped(0, 65535)},
      {"to_i32", "y = Cast <to = 6> (a)", {f32(kWild)}, clamped(kI32Min, kI32Max)},
      {"to_u32", "y = Cast <to = 12> (a)", {f32(kWild)}, clamped(0, kU32Max)},
      {"to_i64", "y = Cast <to = 7> (a)", {f32(kWild)}, clamped(kI64Min, kI64Max)},
      {"to_u64", "y = Cast <to = 13> (a)", {f32(kWild)}, clamped(0, kU64Max)},
      {"f64_to_i32", "y = Cast <to = 6> (a)", {tensor(DType::kF64, {13}, kWild)}, clamped(kI32Min, kI32Max)},
      {"f16_to_i8",
       "y = Cast <to = 3> (a)",
       {tensor(DType::kF16, {5}, {kNan, kInf, -kInf, 300, -300})},
       {{0, 127, -128, 127, -128}}},
      {"to_bool", "y = Cast <to = 9> (a)", {f32({kNan, 0.5, -0.0, 0})}, {{1, 1, 0, 0}}},
      {"i32_to_i8", "y = Cast <to = 3> (a)", {i32({300, -300, 128, -129})}, {{44, -44, -128, 127}}},
      {"i64_to_i32", "y = Cast <to = 6> (a)", {i64({0x1p40 + 5, -0x1p40, 0x1p31})}, {{5, 0, kI32Min}}},
      {"i32_to_u64", "y = Cast <to = 13> (a)", {i32({-1})}, {{kU64Max}}},
      {"to_f16", "y = Cast <to = 10> (a)", {f32({65504, 65519, 65520, -1e6})}, {{65504, 65504, kInf, -kInf}}},
      {"to_f8e4m3",
       "t = Cast <to = 17> (a); y = Cast <to = 1> (t)",
       {f32({kNan, kInf, -kInf, 1e6, 460, 465})},
       {{kNan, 448, -448, 448, 448, 448}}},
      {"to_f8e5m2",
       "t = Cast <to = 19> (a); y = Cast <to = 1> (t)",
       {f32({kNan, kInf, -kInf, 1e6})},
       {{kNan, 57344, -57344, 57344}}},
  };
}

std::vector<Row> integer_rows() {
  Tensor ones = tensor(DType::kU32, {3}, {1, 1, 1}),
         all = tensor(DType::kU32, {3}, {kU32Max, kU32Max, kU32Max}),
         by = tensor(DType::kU32, {3}, {31, 32, 40});
  return {
      {"div_by_zero", "y = Div (a, b)", {i32({7, -7, 0}), i32({0, 0, 0})}, {{0, 0, 0}}},
      {"div_u8_by_zero",
       "y = Div (a, b)",
       {tensor(DType::kU8, {1}, {7}), tensor(DType::kU8, {1}, {0})},
       {{0}}},
      {"div_least", "y = Div (a, b)", {i32({kI32Min}), i32({-1})}, {{kI32Min}}},
      {"div_least_i64", "y = Div (a, b)", {i64({kI64Min}), i64({-1})}, {{kI64Min}}},
      {"div_truncates", "y = Div (a, b)", {i32({-7, 7, -7}), i32({2, -2, -2})}, {{-3, -3, 3}}},
      {"mod_by_zero", "y = Mod (a, b)", {i32({7, -7}), i32({0, 0})}, {{0, 0}}},
      {"fmod_by_zero", "y = Mod <fmod = 1> (a, b)", {i32({7, -7}), i32({0, 0})}, {{0, 0}}},
      {"mod_least", "y = Mod (a, b)", {i32({kI32Min}), i32({-1})}, {{0}}},
      {"float_fmod",
       "y = Mod <fmod = 1> (a, b)",
       {f32({7, -7, kInf, 5}), f32({0, 3, 3, kInf})},
       {{kNan, -1, kNan, 5}}},
      {"shift_left", "y = BitShift <direction = \"LEFT\"> (a, b)", {ones, by}, {{0x1p31, 0, 0}}},
      {"shift_right", "y = BitShift <direction = \"RIGHT\"> (a, b)", {all, by}, {{1, 0, 0}}},
      {"abs_least", "y = Abs (a)", {i32({kI32Min})}, {{kI32Min}}},
      {"neg_least", "y = Neg (a)", {i32({kI32Min})}, {{kI32Min}}},
      {"add_wraps", "y = Add (a, b)", {i32({kI32Max}), i32({1})}, {{kI32Min}}},
      {"pow",
       "y = Pow (a, b)",
       {f32({0, -8, -8, kNan, 1, 0, -0.0, kInf, -1, 0}),
        f32({0, 1.0 / 3, 0.5, 0, kNan, -1, -1, 0, kInf, kNan})},
       {{1, kNan, kNan, 1, 1, kInf, -kInf, 1, 1, kNan}}},
      {"pow_i32",
       "y = Pow (a, b)",
       {i32({0, 2, 2, -1, 2, 0}), i32({0, -1, 31, -3, 40, -1})},
       {{1, 0, kI32Min, -1, 0, 0}}},
  };
}

std::vector<Row> nan_rows() {
  Tensor x = f32({kNan, 1, -1, 0, -0.0, kInf, -kInf});
  return {
      {"sign", "y = Sign (a)", {x}, {{kNan, 1, -1, 0, 0, 1, -1}}},
      {"relu", "y = Relu (a)", {x}, {{kNan, 1, 0, 0, 0, kInf, 0}}},
      {"round",
       "y = Round (a)",
       {f32({kNan, 0.5, 1.5, -0.5, -1.5, 2.5, kInf})},
       {{kNan, 0, 2, -0.0, -2, 2, kInf}}},
      {"max",
       "y = Max (a, b)",
       {f32({kNan, 1, kNan, 0, -0.0}), f32({1, kNan, kNan, -0.0, 0})},
       {{kNan, kNan, kNan, 0, 0}}},
      {"min",
       "y = Min (a, b)",
       {f32({kNan, 1, kNan, 0, -0.0}), f32({1, kNan, kNan, -0.0, 0})},
       {{kNan, kNan, kNan, 0, 0}}},
      {"clip",
       "y = Clip (a, b, c)",
       {f32({kNan, kInf, -kInf}), scalar(DType::kF32, -1), scalar(DType::kF32, 1)},
       {{kNan, 1, -1}}},
      {"clip_empty",
       "y = Clip (a, b, c)",
       {f32({-1, 1.5, 3}), scalar(DType::kF32, 2), scalar(DType::kF32, 1)},
       {{1, 1, 1}}},
      {"clip_nan_bound",
       "y = Clip (a, b, c)",
       {f32({0, 5, -5}), scalar(DType::kF32, kNan), scalar(DType::kF32, 1)},
       {{kNan, kNan, kNan}}},
      {"thresholded_relu", "y = ThresholdedRelu (a)", {x}, {{0, 0, 0, 0, 0, kInf, 0}}},
      {"shrink", "y = Shrink <lambd = 0.5> (a)", {x}, {{0, 1, -1, 0, 0, kInf, -kInf}}},
      {"hard_sigmoid", "y = HardSigmoid (a)", {x}, {{kNan, 0.7, 0.3, 0.5, 0.5, 1, 0}}},
      {"log", "y = Log (a)", {f32({-1, 0, -0.0, kNan, kInf})}, {{kNan, -kInf, -kInf, kNan, kInf}}},
      {"sqrt", "y = Sqrt (a)", {f32({-1, -0.0, kNan, kInf})}, {{kNan, -0.0, kNan, kInf}}},
      {"equal", "y = Equal (a, b)", {f32({kNan, 0}), f32({kNan, -0.0})}, {{0, 1}}},
      {"non_zero_nan", "t = NonZero (a); y = Cast <to = 1> (t)", {f32({0, kNan, -0.0})}, {{1}}},
      {"zero_times_infinity", "y = MatMul (a, b)", {f32({1, 2}, {0, 1}), f32({2, 1}, {kInf, 1})}, {{kNan}}},
      {"batch_norm_negative",
       "y = BatchNormalization (a, b, c, c, d)",
       {f32({1, 1, 2}, {1, 2}), f32({1}), f32({0}), f32({-1})},
       {{kNan, kNan}}},
  };
}

std::vector<Row> softmax_rows() {
  return {
      {"softmax_none", "y = Softmax (a)", {f32({1, 2}, {-kInf, -kInf})}, {{kNan, kNan}}},
      {"softmax_infinite", "y = Softmax (a)", {f32({1, 2}, {kInf, 1})}, {{kNan, kNan}}},
      {"softmax_nan", "y = Softmax (a)", {f32({1, 2}, {kNan, 0})}, {{kNan, kNan}}},
      {"log_softmax_none", "y = LogSoftmax (a)", {f32({1, 2}, {-kInf, -kInf})}, {{kNan, kNan}}},
      {"log_softmax_one", "y = LogSoftmax (a)", {f32({1, 2}, {-kInf, 0})}, {{-kInf, 0}}},
      {"hardmax_ties", "y = Hardmax (a)", {f32({1, 4}, {1, 3, 3, 2})}, {{0, 1, 0, 0}}},
      {"hardmax_nan", "y = Hardmax (a)", {f32({1, 4}, {1, kNan, 3, kNan})}, {{0, 1, 0, 0}}},
      {"lp_zero", "y = LpNormalization (a)", {f32({1, 2}, {0, 0})}, {{0, 0}}},
      {"mean_variance_constant",
       "y = MeanVarianceNormalization (a)",
       {f32({1, 1, 2, 2}, {3, 3, 3, 3})},
       {{0, 0, 0, 0}}},
      {"attention_of_nothing",
       "y = Attention (a, a, a, b)",
       {f32({1, 1, 2, 2}, {1, 1, 1, 1}), tensor(DType::kBool, {2, 2}, {0, 0, 1, 1})},
       {{0, 0, 1, 1}}},
      {"layer_norm_constant",
       "y = LayerNormalization <epsilon = 0.0> (a, b)",
       {f32({1, 2}, {3, 3}), f32({1, 1})},
       {{kNan, kNan}}},
  };
}

std::vector<Row> reduction_rows() {
  Tensor none = f32({2, 0}, {}), no_integers = tensor(DType::kI32, {2, 0}, {}), axis = i64({1});
  auto of_none = [&](const std::string& op, const Tensor& x, double result) {
    return Row{op + (x.dtype == DType::kI32 ? "_of_no_integers" : "_of_nothing"),
               "y = " + op + " <keepdims = 0> (a, b)",
               {x, axis},
               {{result, result}},
               "b"};
  };
  auto reduce = [&](const std::string& name, const std::string& op, const std::vector<double>& x,
                    double result) {
    return Row{name,
               "y = " + op + " <keepdims = 0> (a, b)",
               {f32({1, static_cast<int64_t>(x.size())}, x), axis},
               {{result}},
               "b"};
  };
  auto arg = [&](const std::string& name, const std::string& op, const std::vector<double>& x, double result,
                 bool last = false) {
    return Row{name,
               "y = " + op + " <axis = 1, keepdims = 0, select_last_index = " + (last ? "1" : "0") + "> (a)",
               {f32({1, static_cast<int64_t>(x.size())}, x)},
               {{result}}};
  };
  return {
      of_none("ReduceSum", none, 0),
      of_none("ReduceMean", none, kNan),
      of_none("ReduceMax", none, -kInf),
      of_none("ReduceMin", none, kInf),
      of_none("ReduceProd", none, 1),
      of_none("ReduceL2", none, 0),
      of_none("ReduceLogSum", none, -kInf),
      of_none("ReduceLogSumExp", none, -kInf),
      of_none("ReduceMean", no_integers, 0),
      {"mean_of_integers",
       "y = ReduceMean <keepdims = 0> (a, b)",
       {tensor(DType::kI32, {2, 2}, {-3, 0, 3, 4}), axis},
       {{-1, 3}},
       "b"},
      reduce("reduce_max_nan", "ReduceMax", {1, kNan, 3}, kNan),
      reduce("reduce_min_nan", "ReduceMin", {1, kNan, 3}, kNan),
      reduce("log_sum_exp_none", "ReduceLogSumExp", {-kInf, -kInf}, -kInf),
      reduce("log_sum_exp_infinite", "ReduceLogSumExp", {kInf, 1}, kInf),
      reduce("log_sum_exp_large", "ReduceLogSumExp", {1000, 1000}, 1000.69315),
      arg("argmax_ties", "ArgMax", {1, 3, 3}, 1),
      arg("argmax_last", "ArgMax", {1, 3, 3}, 2, true),
      arg("argmax_nan", "ArgMax", {1, kNan, 3, kNan}, 1),
      arg("argmin_nan", "ArgMin", {1, kNan, 3, kNan}, 1),
      arg("argmax_last_nan", "ArgMax", {1, kNan, 3, kNan}, 3, true),
      arg("argmax_zeros", "ArgMax", {-0.0, 0}, 0),
  };
}

std::vector<Row> sort_rows() {
  Tensor two = i64({2}), three = i64({3});
  return {
      {"top_ties", "y, z = TopK (a, b)", {f32({1, 3, 3, 2, 3}), two}, {{3, 3}, {1, 2}}, "b"},
      {"top_nan", "y, z = TopK (a, b)", {f32({1, kNan, 3, kNan}), three}, {{kNan, kNan, 3}, {1, 3, 2}}, "b"},
      {"bottom_nan",
       "y, z = TopK <largest = 0> (a, b)",
       {f32({1, kNan, 3, kNan}), three},
       {{1, 3, kNan}, {0, 2, 1}},
       "b"},
      {"top_zeros", "y, z = TopK (a, b)", {f32({-0.0, 0}), two}, {{-0.0, 0}, {0, 1}}, "b"},
      {"top_unsorted",
       "y, z = TopK <sorted = 0> (a, b)",
       {f32({1, 5, 3, 4}), three},
       {{5, 4, 3}, {1, 3, 2}},
       "b"},
      {"unique_nan", "y, z = Unique (a)", {f32({2, kNan, 1, kNan, 2})}, {{1, 2, kNan}, {2, 0, 1}}},
      {"unique_zeros", "y, z = Unique (a)", {f32({0, -0.0})}, {{0}, {0}}},
      {"cum_sum_nan",
       "y = CumSum (a, b)",
       {f32({1, kNan, 2}), scalar(DType::kI64, 0)},
       {{1, kNan, kNan}},
       "b"},
  };
}

std::vector<Row> pool_rows() {
  Tensor four = f32({1, 1, 4}, {1, 2, 3, 4}), five = f32({1, 1, 5}, {1, 2, 3, 4, 5});
  return {
      {"max_pool_padding",
       "y = MaxPool <kernel_shape = [2], strides = [2], pads = [2, 0]> (a)",
       {four},
       {{-kInf, 2, 4}}},
      {"average_pool_padding",
       "y = AveragePool <kernel_shape = [2], strides = [2], pads = [2, 0]> (a)",
       {four},
       {{0, 1.5, 3.5}}},
      {"average_pool_padding_counts",
       "y = AveragePool <kernel_shape = [2], strides = [2], pads = [2, 0], count_include_pad = 1> (a)",
       {four},
       {{0, 1.5, 3.5}}},
      {"max_pool_ceil",
       "y = MaxPool <kernel_shape = [1], strides = [3], ceil_mode = 1> (a)",
       {five},
       {{1, 4}}},
      {"average_pool_ceil",
       "y = AveragePool <kernel_shape = [2], strides = [2], ceil_mode = 1, count_include_pad = 1> (a)",
       {five},
       {{1.5, 3.5, 5}}},
      {"max_pool_nan",
       "y = MaxPool <kernel_shape = [2], strides = [2]> (a)",
       {f32({1, 1, 4}, {kNan, 1, 2, kNan})},
       {{kNan, kNan}}},
      {"max_pool_ties",
       "y, z = MaxPool <kernel_shape = [2], strides = [2]> (a)",
       {f32({1, 1, 4}, {5, 5, 5, 5})},
       {{5, 5}, {0, 2}}},
      {"max_pool_infinite",
       "y = MaxPool <kernel_shape = [2]> (a)",
       {f32({1, 1, 2}, {-kInf, -kInf})},
       {{-kInf}}},
  };
}

// Indices that are out of range are constants in no form of a row: those are refused.
std::vector<Row> index_rows() {
  Tensor zeros = f32({0, 0, 0});
  return {
      {"scatter_twice", "y = ScatterElements (a, b, c)", {zeros, i64({1, 1}), f32({5, 7})}, {{0, 7, 0}}},
      {"scatter_nd_twice",
       "y = ScatterND (a, b, c)",
       {zeros, tensor(DType::kI64, {2, 1}, {1, 1}), f32({5, 7})},
       {{0, 7, 0}}},
      {"one_hot",
       "y = OneHot (a, b, c)",
       {i64({0, 3, -1, -4}), scalar(DType::kI64, 3), f32({0, 1})},
       {{1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}},
       "b"},
      {"eye_like", "y = EyeLike <k = 3> (a)", {f32({2, 2}, {1, 1, 1, 1})}, {{0, 0, 0, 0}}},
      {"trilu", "y = Trilu (a, b)", {f32({2, 2}, {1, 1, 1, 1}), scalar(DType::kI64, 5)}, {{0, 0, 0, 0}}, "b"},
      {"split", "y, z = Split <num_outputs = 2> (a)", {f32({1, 2, 3, 4, 5})}, {{1, 2, 3}, {4, 5}}},
      {"slice", "y = Slice (a, b, c)", {f32({1, 2, 3}), i64({-9}), i64({9})}, {{1, 2, 3}}, "bc"},
      {"reverse_nothing",
       "y = ReverseSequence <time_axis = 0, batch_axis = 1> (a, b)",
       {f32({4, 1}, {1, 2, 3, 4}), i64({0})},
       {{1, 2, 3, 4}}},
      {"no_terms", "y = MatMul (a, b)", {f32({2, 0}, {}), f32({0, 2}, {})}, {{0, 0, 0, 0}}},
  };
}

std::vector<Row> quantize_rows() {
  Tensor one = scalar(DType::kF32, 1), zero = scalar(DType::kF32, 0), five = scalar(DType::kU8, 5);
  return {
      {"quantize",
       "y = QuantizeLinear (a, b, c)",
       {f32({kNan, kInf, -kInf, 1e30}), one, five},
       {{0, 255, 0, 255}}},
      {"quantize_i8",
       "y = QuantizeLinear (a, b, c)",
       {f32({kNan, kInf, -kInf, 0.5, 1.5, 2.5}), one, scalar(DType::kI8, 0)},
       {{0, 127, -128, 0, 2, 2}}},
      {"quantize_scale_zero", "y = QuantizeLinear (a, b, c)", {f32({0, 1, -1}), zero, five}, {{0, 255, 0}}},
      {"dynamic_zeros", "y, z, w = DynamicQuantizeLinear (a)", {f32({0, 0})}, {{0, 0}, {0}, {0}}},
      {"dynamic_infinite", "y, z, w = DynamicQuantizeLinear (a)", {f32({kInf, 1})}, {{0, 0}, {kInf}, {0}}},
      {"dynamic_nan", "y, z, w = DynamicQuantizeLinear (a)", {f32({kNan, 1})}, {{0, 0}, {kNan}, {0}}},
  };
}

std::vector<Row> resize_rows() {
  Tensor three = f32({1, 1, 3}, {1, 5, 9}), four = f32({1, 1, 4}, {1, 2, 3, 4});
  auto resize = [](const std::string& name, const std::string& attributes, const Tensor& x, double scale,
                   const std::vector<double>& result) {
    return Row{name, "y = Resize <" + attributes + "> (a, none, b)", {x, f32({1, 1, scale})}, {result}, "b"};
  };
  std::string corners = "mode = \"linear\", coordinate_transformation_mode = \"align_corners\"";
  auto nearest = [](const std::string& rounding) {
    return "mode = \"nearest\", nearest_mode = \"" + rounding + "\"";
  };
  return {
      resize("align_corners", corners, three, 2.5,
             {1, 2.2307692, 3.4615386, 4.6923075, 5.923077, 7.1538463, 8.384615}),
      resize("align_corners_down", corners, four, 0.6, {1, 3.142857}),
      resize("half_pixel", "mode = \"linear\"", three, 2.5, {1, 1.4, 3, 4.6, 6.2, 7.8, 9}),
      resize("ties_prefer_floor", nearest("round_prefer_floor"), four, 0.5, {1, 3}),
      resize("ties_prefer_ceil", nearest("round_prefer_ceil"), four, 0.5, {2, 4}),
      resize("cubic", "mode = \"cubic\"", four, 2,
             {0.8945312, 1.1914062, 1.6679688, 2.296875, 2.703125, 3.3320312, 3.8085938, 4.1054688}),
      resize("nan_neighbour", "mode = \"linear\"", f32({1, 1, 3}, {1, kNan, 3}), 2,
             {1, kNan, kNan, kNan, kNan, 3}),
  };
}

std::vector<Row> sampling_rows() {
  Tensor image = f32({1, 1, 2, 2}, {1, 2, 3, 4}),
         grid = f32({1, 1, 4, 2}, {kNan, 0, 0, kNan, kInf, 0, -kInf, 0});
  Tensor ramp = f32({1, 1, 4, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  Tensor boxes = f32({1, 2, 4}, {0, 0, 1, 1, 10, 10, 11, 11}), most = i64({3}), half = f32({0.5}),
         tenth = f32({0.1});
  auto suppress = [&](const std::string& name, const std::vector<double>& scores, const Tensor& threshold,
                      const std::vector<double>& result) {
    return Row{name,
               "t = NonMaxSuppression (a, b, c, d, e); y = Cast <to = 1> (t)",
               {boxes, f32({1, 1, 2}, scores), most, half, threshold},
               {result},
               "cde"};
  };
  return {
      {"grid_nowhere",
       "y = GridSample <padding_mode = \"zeros\", mode = \"nearest\"> (a, b)",
       {image, grid},
       {{0, 0, 0, 0}}},
      {"roi_outside",
       "y = RoiAlign <output_height = 1, output_width = 1, sampling_ratio = 2> (a, b, c)",
       {ramp, f32({3, 4}, {-10, -10, -8, -8, 2, 2, 1, 1, 3, 3, 20, 20}), i64({0, 0, 0})},
       {{0, 5, 0}}},
      suppress("suppress_ties", {0.5, 0.5}, tenth, {0, 0, 0, 0, 0, 1}),
      suppress("suppress_at_threshold", {0.5, 0.6}, half, {0, 0, 1}),
  };
}

std::vector<Row> recurrent_rows() {
  Tensor x = f32({3, 2, 2}, std::vector<double>(12, 1)), h = f32({1, 2, 2}, std::vector<double>(4, 0.7)),
         c = f32({1, 2, 2}, std::vector<double>(4, 0.4)), lengths = i32({0, 2});
  auto weights = [](int64_t rows, int64_t columns, double value) {
    return f32({1, rows, columns}, std::vector<double>(static_cast<size_t>(rows * columns), value));
  };
  Tensor three = f32({1, 1, 1}, {3}), h0 = f32({1, 1, 1}, {0.5}), c0 = f32({1, 1, 1}, {0.9});
  double gate = 1 / (1 + std::exp(-0.15)), cell = gate * 0.9 + gate * std::tanh(0.15);
  return {
      {"rnn_empty_row",
       "w, y = RNN <hidden_size = 2> (a, b, c, none, d, e)",
       {x, weights(2, 2, 0.1), weights(2, 2, 0.1), lengths, h},
       {{0.7, 0.7, 0.2594284, 0.2594284}}},
      {"gru_empty_row",
       "w, y = GRU <hidden_size = 2> (a, b, c, none, d, e)",
       {x, weights(6, 2, 0.1), weights(6, 2, 0.1), lengths, h},
       {{0.7, 0.7, 0.4090957, 0.4090957}}},
      {"lstm_empty_row",
       "w, y, z = LSTM <hidden_size = 2> (a, b, c, none, d, e, f)",
       {x, weights(8, 2, 0.1), weights(8, 2, 0.1), lengths, h, c},
       {{0.7, 0.7, 0.2009059, 0.2009059},
        {0.4, 0.4, 0.3744325, 0.3744325},
        {0, 0, 0.2343316, 0.2343316, 0, 0, 0.2009059, 0.2009059, 0, 0, 0, 0}}},
      {"lstm_clip",
       "w, y, z = LSTM <hidden_size = 1, clip = 0.15> (a, b, c, none, none, d, e)",
       {three, weights(4, 1, 0.4), weights(4, 1, 0.1), h0, c0},
       {{gate * std::tanh(0.15)}, {cell}}},
      {"gru_clip",
       "w, y = GRU <hidden_size = 1, clip = 0.15> (a, b, c, none, none, d)",
       {three, weights(3, 1, 0.4), weights(3, 1, 0.1), h0},
       {{0.3375847}}},
  };
}

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (auto* family : {cast_rows, integer_rows, nan_rows, softmax_rows, reduction_rows, sort_rows, pool_rows,
                       index_rows, quantize_rows, resize_rows, sampling_rows, recurrent_rows})
    for (Row& row : family()) rows.push_back(std::move(row));
  return rows;
}

// What `--like onnxruntime` changes; the numbers are ONNX Runtime's.
std::vector<Row> onnxruntime_rows() {
  std::vector<Row> rows;
  auto changed = [&](const std::string& name, const std::vector<std::vector<double>>& results) {
    for (Row& row : all_rows())
      if (row.name == name) rows.push_back(row), rows.back().results = results;
  };
  changed("to_i8", {{0, 0, 0, 44, -44, -128, 127, 0, 0, 0, 0, 0, 1}});
  changed("to_u8", {{0, 0, 0, 44, 212, 128, 127, 0, 0, 0, 0, 0, 1}});
  changed("to_i16", {{0, 0, 0, 300, -300, 128, -129, 0, 0, 0, 0, 0, 1}});
  changed("to_i32",
          {{kI32Min, kI32Min, kI32Min, 300, -300, 128, -129, kI32Min, kI32Min, kI32Min, kI32Min, 0, 1}});
  changed("to_i64", {{kI64Min, kI64Min, kI64Min, 300, -300, 128, -129, 3e9, -3e9, kI64Min, kI64Min, 0, 1}});
  changed("f16_to_i8", {{0, 0, 0, 44, -44}});
  changed("dynamic_zeros", {{0, 0}, {1}, {0}});
  changed("align_corners", {{1, 2.3333333, 3.6666665, 5, 6.333333, 7.666666, 9}});
  changed("align_corners_down", {{1, 4}});
  changed("rnn_empty_row", {{0, 0, 0.2594284, 0.2594284}});
  changed("gru_empty_row", {{0, 0, 0.4090957, 0.4090957}});
  changed("lstm_empty_row", {{0, 0, 0.2009059, 0.2009059}, {0, 0, 0.3744325, 0.3744325}});
  changed("lstm_clip", {{0.2744757}, {0.5637021}});
  return rows;
}

// ---- running it

struct Table {
  ModelBuilder model{24};
  std::vector<Tensor> inputs;
  std::vector<std::pair<std::string, std::vector<double>>> results;  // row and result, in order
};

onnx::TensorProto to_proto(const std::string& name, const Tensor& t) {
  static const std::map<DType, int> kTypes = {{DType::kF32, 1},  {DType::kU8, 2},   {DType::kI8, 3},
                                              {DType::kI32, 6},  {DType::kI64, 7},  {DType::kBool, 9},
                                              {DType::kF16, 10}, {DType::kF64, 11}, {DType::kU32, 12}};
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(kTypes.at(t.dtype));
  for (int64_t d : t.dims) proto.add_dims(d);
  proto.set_raw_data(std::string(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()));
  return proto;
}

void add_row(Table& table, const Row& row, bool folded) {
  for (size_t i = 0; i < row.operands.size(); ++i) {
    std::string letter(1, static_cast<char>('a' + i)), name = row.name + "." + letter;
    onnx::TensorProto proto = to_proto(name, row.operands[i]);
    if (folded || row.known.find(letter) != std::string::npos) {
      *table.model.graph().add_initializer() = proto;
    } else {
      table.model.input(name, row.operands[i].dims, proto.data_type());
      table.inputs.push_back(row.operands[i]);
    }
  }
  for (size_t begin = 0; begin < row.nodes.size();) {
    size_t end = std::min(row.nodes.find("; ", begin), row.nodes.size());
    onnx::NodeProto node;
    std::string text = row.nodes.substr(begin, end - begin);
    onnx::OnnxParser parser(text.c_str());
    auto parsed = parser.Parse(node);
    ASSERT_TRUE(parsed.IsOK()) << row.name << ": " << parsed.ErrorMessage();
    for (std::string& name : *node.mutable_input()) name = name == "none" ? "" : row.name + "." + name;
    for (std::string& name : *node.mutable_output()) name = row.name + "." + name;
    node.set_name(row.name);
    *table.model.graph().add_node() = node;
    begin = end + 2;
  }
  static const std::string kNames[] = {"y", "z", "w"};
  for (size_t i = 0; i < row.results.size(); ++i) {
    table.model.output(row.name + "." + kNames[i]);
    table.results.emplace_back(row.name, row.results[i]);
  }
}

Table make_table(const std::vector<Row>& rows, bool folded) {
  Table table;
  for (const Row& row : rows) add_row(table, row, folded);
  return table;
}

bool agrees(double got, double want) {
  if (std::isnan(want)) return std::isnan(got);
  if (want == 0) return got == 0 ? std::signbit(got) == std::signbit(want) || !std::signbit(want) : false;
  return got == want || std::abs(got - want) <= 2e-6 * std::abs(want);
}

void expect_rows(const Table& table, const std::vector<Tensor>& got, const std::string& how) {
  ASSERT_EQ(got.size(), table.results.size());
  for (size_t r = 0; r < got.size(); ++r) {
    const auto& [name, want] = table.results[r];
    EXPECT_EQ(static_cast<size_t>(got[r].count()), want.size()) << how << " " << name;
    for (size_t i = 0; i < std::min(want.size(), static_cast<size_t>(got[r].count())); ++i) {
      double value = element_as_f64(got[r], static_cast<int64_t>(i));
      EXPECT_TRUE(agrees(value, want[i]))
          << how << " " << name << ", element " << i << ": expected " << want[i] << ", found " << value;
    }
  }
}

Graph import(const Table& table, const OnnxChoices& choices) {
  ImportOptions options;
  options.choices = choices;
  Expected<ImportedModel> imported = table.model.import(options);
  if (imported) return std::move(imported->graph);
  ADD_FAILURE() << to_string(imported.errors());
  return {};
}

void expect_everywhere(const std::vector<Row>& rows, const OnnxChoices& choices) {
  for (bool folded : {false, true}) {
    Table table = make_table(rows, folded);
    Graph graph = import(table, choices);
    if (graph.outputs.empty()) return;
    if (folded) {
      Expected<Graph> constants = fold_constants(graph);
      ASSERT_TRUE(constants) << to_string(constants.errors());
      graph = std::move(*constants);
    }
    Expected<std::vector<Tensor>> got = interpret(graph, table.inputs);
    ASSERT_TRUE(got) << to_string(got.errors());
    expect_rows(table, *got, folded ? "folded" : "interpreted");
    for (const char* target : {"native", "x86-64"}) {
      if (folded && std::string(target) != "native") continue;
      CompileOptions options;
      options.targets = {target};
      got = testing::run_compiled(graph, table.inputs, options, 1);
      ASSERT_TRUE(got) << to_string(got.errors());
      expect_rows(table, *got, std::string(folded ? "folded and compiled for " : "compiled for ") + target);
    }
  }
}

TEST(Choices, are_the_same_folded_interpreted_and_compiled) { expect_everywhere(all_rows(), {}); }

TEST(Choices, like_onnxruntime) {
  OnnxChoices choices;
  ASSERT_TRUE(choose_like("onnxruntime", choices));
  expect_everywhere(onnxruntime_rows(), choices);
}

TEST(Choices, like_onnxruntime_in_one_point) {
  OnnxChoices choices;
  ASSERT_TRUE(choose_like("onnxruntime:zero-scale,casts", choices));
  EXPECT_TRUE(choices.zero_scale && choices.wrapped_casts);
  EXPECT_FALSE(choices.align_corners || choices.lstm_clip || choices.empty_sequence || choices.checked);
}

TEST(Choices, unknown_ones_are_answered_with_all) {
  OnnxChoices choices;
  for (const char* text : {"tensorflow", "onnxruntime:rounding", "onnxruntime:", ""}) {
    Status status = choose_like(text, choices);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.errors()[0].message,
              "expected onnxruntime, or onnxruntime: and names of choices (align-corners, casts, "
              "empty-sequence, lstm-clip, zero-scale) with commas between, found '" +
                  std::string(text) + "'");
  }
}

}  // namespace
}  // namespace quernel::onnx_test
