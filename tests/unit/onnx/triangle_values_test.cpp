// Triangles and masks made of positions, of free sizes, compared with their definitions.
#include "run_model.h"

namespace quernel::onnx_test {
namespace {

constexpr int kFloat16 = 10, kDouble = 11, kInt8 = 3, kUInt8 = 2, kInt32 = 6, kBFloat16 = 16;

Tensor numbers(DType dtype, const std::vector<int64_t>& dims) {
  int64_t count = element_count(dims).value_or(0);
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, count)));
  for (int64_t i = 0; i < count; ++i)
    if (is_float(dtype))
      store_f64(dtype, bytes.data(), i, static_cast<double>(i % 7 + 1));
    else
      store_i64(dtype, bytes.data(), i, dtype == DType::kBool ? 1 : i % 7 + 1);
  return {dtype, dims, Bytes::own(std::move(bytes))};
}

// dims: [batch…, rows, columns].
std::vector<double> triangle(const Tensor& x, int64_t k, bool upper) {
  int64_t columns = x.dims.back(), rows = x.dims[x.dims.size() - 2];
  std::vector<double> y;
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t row = i / columns % rows, column = i % columns;
    bool kept = upper ? column - row >= k : column - row <= k;
    y.push_back(kept ? element_as_f64(x, i) : 0);
  }
  return y;
}

enum class Diagonal { kAbsent, kConstant, kInput };

void check_trilu(int type, DType dtype, bool batched, bool upper, Diagonal form) {
  ModelBuilder m(14);
  if (batched)
    m.input("x", {-1, 2, -1, -1}, type, {"b", "", "s", "t"});
  else
    m.input("x", {-1, -1}, type, {"s", "t"});
  for (int64_t k : {0, 1, -1, 3, -4, 100, -100}) {
    if (form == Diagonal::kAbsent && k != 0) continue;
    ModelBuilder own = m;
    if (form == Diagonal::kConstant) own.ints("k", {}, {k});
    if (form == Diagonal::kInput) own.input("k", {}, kInt64);
    std::vector<std::string> operands{"x"};
    if (form != Diagonal::kAbsent) operands.push_back("k");
    set_int(own.output("y").node("Trilu", operands, {"y"}), "upper", upper);
    for (auto [rows, columns] : {std::pair{1, 1}, {3, 3}, {2, 5}, {5, 2}, {1, 4}}) {
      std::vector<int64_t> dims{rows, columns};
      if (batched) dims.insert(dims.begin(), {3, 2});
      Tensor x = numbers(dtype, dims);
      std::vector<Tensor> inputs{x};
      if (form == Diagonal::kInput) inputs.push_back(i64_tensor({}, {k}));
      expect_values(run(own, inputs).at(0), dims, triangle(x, k, upper));
    }
  }
}

TEST(Triangles, trilu_of_free_sizes) {
  for (Diagonal form : {Diagonal::kAbsent, Diagonal::kConstant, Diagonal::kInput})
    for (bool upper : {false, true})
      for (bool batched : {false, true}) check_trilu(kFloat, DType::kF32, batched, upper, form);
  for (auto [type, dtype] : {std::pair{kFloat16, DType::kF16},
                             {kBFloat16, DType::kBF16},
                             {kDouble, DType::kF64},
                             {kInt8, DType::kI8},
                             {kUInt8, DType::kU8},
                             {kInt32, DType::kI32},
                             {kInt64, DType::kI64},
                             {kBool, DType::kBool}})
    for (bool upper : {false, true}) check_trilu(type, dtype, false, upper, Diagonal::kConstant);
}

TEST(Triangles, trilu_of_known_sizes_takes_k_at_run_time) {
  ModelBuilder m(14);
  m.input("x", {3, 4}).input("k", {1}, kInt64).output("y");
  set_int(m.node("Trilu", {"x", "k"}, {"y"}), "upper", 0);
  Tensor x = numbers(DType::kF32, {3, 4});
  for (int64_t k : {-2, 0, 2})
    expect_values(run(m, {x, i64_tensor({1}, {k})}).at(0), {3, 4}, triangle(x, k, false));
}

// The mask [s, s + p] that lets query i see keys up to i + p, by each way that exporters write it.
enum class MaskForm { kTrilu, kRange, kFloatRange, kCumSum, kEyeLike };

ModelBuilder mask_model(MaskForm form) {
  ModelBuilder m(17);
  m.input("x", {-1}, kFloat, {"s"}).input("past", {-1}, kFloat, {"p"}).output("y");
  m.node("Shape", {"x"}, {"s"});
  m.node("Shape", {"past"}, {"p"});
  m.node("Add", {"s", "p"}, {"t"});
  m.ints("at0", {1}, {0});
  m.ints("at1", {1}, {1});
  m.ints("scalar", {0}, {});
  for (const char* dim : {"s", "p", "t"}) m.node("Squeeze", {dim, "at0"}, {std::string(dim) + "0"});
  set_int(m.node("Concat", {"s", "t"}, {"shape"}), "axis", 0);
  onnx::NodeProto& ones = m.node("ConstantOfShape", {"shape"}, {"ones"});
  onnx::TensorProto& one = *attribute(ones, "value", onnx::AttributeProto::TENSOR).mutable_t();
  one.set_data_type(kFloat);
  one.add_dims(1);
  one.add_float_data(1);
  if (form == MaskForm::kTrilu) {
    set_int(m.node("Trilu", {"ones", "p"}, {"y"}), "upper", 0);
  } else if (form == MaskForm::kCumSum) {
    m.ints("row_axis", {}, {0});
    m.ints("column_axis", {}, {1});
    set_int(m.node("CumSum", {"ones", "row_axis"}, {"rows"}), "exclusive", 1);
    set_int(m.node("CumSum", {"ones", "column_axis"}, {"columns"}), "exclusive", 1);
    set_int(m.node("Cast", {"p"}, {"offset"}), "to", kFloat);
    m.node("Add", {"rows", "offset"}, {"last"});
    m.node("LessOrEqual", {"columns", "last"}, {"mask"});
  } else if (form == MaskForm::kEyeLike) {
    // Every diagonal from the first key's on: the running sum of the last one, backwards.
    m.node("EyeLike", {"ones"}, {"eye"});
    m.ints("column_axis", {}, {1});
    set_int(m.node("CumSum", {"eye", "column_axis"}, {"sum"}), "reverse", 1);
    m.floats("none", {}, {0});
    m.node("Greater", {"sum", "none"}, {"mask"});
  } else {
    bool floats = form == MaskForm::kFloatRange;
    std::string start = "zero", end = "t0", delta = "one", first = "p0";
    m.ints("zero", {}, {0});
    m.ints("one", {}, {1});
    if (floats) {
      m.floats("zero_f", {}, {0});
      m.floats("one_f", {}, {1});
      set_int(m.node("Cast", {"t0"}, {"t_f"}), "to", kFloat);
      set_int(m.node("Cast", {"p0"}, {"p_f"}), "to", kFloat);
      start = "zero_f", end = "t_f", delta = "one_f", first = "p_f";
    }
    m.node("Range", {start, end, delta}, {"keys"});
    m.node("Range", {first, end, delta}, {"queries"});
    m.node("Unsqueeze", {"queries", "at1"}, {"column"});
    m.node("LessOrEqual", {"keys", "column"}, {"mask"});
  }
  if (form != MaskForm::kTrilu) set_int(m.node("Cast", {"mask"}, {"y"}), "to", kFloat);
  return m;
}

TEST(Triangles, causal_masks_of_free_sizes) {
  for (MaskForm form :
       {MaskForm::kTrilu, MaskForm::kRange, MaskForm::kFloatRange, MaskForm::kCumSum, MaskForm::kEyeLike})
    for (auto [s, p] : {std::pair{1, 1}, {4, 1}, {1, 5}, {3, 2}}) {
      SCOPED_TRACE(static_cast<int>(form));
      int past = form == MaskForm::kEyeLike ? 0 : p;
      std::vector<double> expected;
      for (int i = 0; i < s; ++i)
        for (int j = 0; j < s + p; ++j) expected.push_back(j <= i + past);
      std::vector<Tensor> y = run(mask_model(form), {numbers(DType::kF32, {s}), numbers(DType::kF32, {p})});
      ASSERT_EQ(y.size(), 1u);
      expect_values(y[0], {s, s + p}, expected);
    }
}

}  // namespace
}  // namespace quernel::onnx_test
