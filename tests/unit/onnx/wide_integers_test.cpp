// Integers that no f32, or no f64, holds: operators on them are exact, and no operand is rounded to a
// narrower dtype on the way.
#include <cmath>
#include <limits>

#include "run_model.h"

namespace quernel::onnx_test {
namespace {

struct Integer {
  DType dtype;
  int type;  // ONNX's
};
const Integer kIntegers[] = {{DType::kI8, 3},  {DType::kU8, 2},   {DType::kI16, 5}, {DType::kU16, 4},
                             {DType::kI32, 6}, {DType::kU32, 12}, {DType::kI64, 7}, {DType::kU64, 13}};
const Integer kFloats[] = {{DType::kF16, 10}, {DType::kBF16, 16}, {DType::kF32, 1}, {DType::kF64, 11}};

Tensor integers(DType dtype, const std::vector<int64_t>& values) {
  std::vector<uint8_t> bytes(values.size() * static_cast<size_t>(element_size(dtype)));
  for (size_t i = 0; i < values.size(); ++i)
    store_i64(dtype, bytes.data(), static_cast<int64_t>(i), values[i]);
  return {dtype, {static_cast<int64_t>(values.size())}, Bytes::own(std::move(bytes))};
}

Tensor floats(DType dtype, const std::vector<double>& values) {
  std::vector<uint8_t> bytes(values.size() * static_cast<size_t>(element_size(dtype)));
  for (size_t i = 0; i < values.size(); ++i)
    store_f64(dtype, bytes.data(), static_cast<int64_t>(i), values[i]);
  return {dtype, {static_cast<int64_t>(values.size())}, Bytes::own(std::move(bytes))};
}

void add_constant(ModelBuilder& m, const std::string& name, int type, const Tensor& tensor) {
  onnx::TensorProto& initializer = *m.graph().add_initializer();
  initializer.set_name(name);
  initializer.set_data_type(type);
  for (int64_t d : tensor.dims) initializer.add_dims(d);
  initializer.set_raw_data(tensor.bytes.data(), tensor.bytes.size());
}

// The result of Pow, with the exponent as an input or as a constant.
Tensor pow(Integer base, const Tensor& x, Integer exponent, const Tensor& e, bool constant) {
  ModelBuilder m(15);
  m.input("x", x.dims, base.type).output("y");
  std::vector<Tensor> inputs{x};
  if (constant) {
    add_constant(m, "e", exponent.type, e);
  } else {
    m.input("e", e.dims, exponent.type);
    inputs.push_back(e);
  }
  m.node("Pow", {"x", "e"}, {"y"});
  return run(m, inputs).at(0);
}

std::vector<int64_t> bases_of(DType dtype) {
  std::vector<int64_t> values{0, 1, 2, 3, 7, 11};
  if (!is_unsigned_integer(dtype)) values.insert(values.end(), {-1, -2, -5, -11});
  if (bit_width(dtype) >= 16) values.insert(values.end(), {181, 127});
  if (bit_width(dtype) >= 32) values.insert(values.end(), {4097, 46337, 16777217});
  if (bit_width(dtype) >= 64)
    values.insert(values.end(),
                  {16785409, 94906267, 3037000499, (int64_t{1} << 53) + 1, (int64_t{1} << 62) + 3});
  return values;
}

// In 128 bits; nullopt where the dtype does not hold the result, which ONNX leaves open.
std::optional<int64_t> exact_power(DType dtype, int64_t base, int exponent) {
  __int128 result = 1, lowest = 0, highest = (__int128{1} << bit_width(dtype)) - 1;
  if (is_signed_integer(dtype)) {
    lowest = -(__int128{1} << (bit_width(dtype) - 1));
    highest = -lowest - 1;
  }
  for (int i = 0; i < exponent; ++i) {
    result *= base;
    if (result < lowest || result > highest) return std::nullopt;
  }
  return static_cast<int64_t>(result);
}

TEST(WideIntegers, whole_float_exponents_give_exact_powers) {
  for (Integer base : kIntegers)
    for (Integer exponent : kFloats)
      for (bool constant : {false, true}) {
        std::vector<int64_t> x, expected;
        std::vector<double> e;
        for (int64_t b : bases_of(base.dtype))
          for (int k : {0, 1, 2, 3, 5, 13})
            if (std::optional<int64_t> y = exact_power(base.dtype, b, k)) {
              x.push_back(b);
              e.push_back(k);
              expected.push_back(*y);
            }
        Tensor y = pow(base, integers(base.dtype, x), exponent, floats(exponent.dtype, e), constant);
        ASSERT_EQ(y.dtype, base.dtype);
        for (size_t i = 0; i < x.size(); ++i)
          EXPECT_EQ(element_as_i64(y, static_cast<int64_t>(i)), expected[i])
              << to_string(base.dtype) << " " << x[i] << " ^ " << to_string(exponent.dtype) << " " << e[i];
      }
}

TEST(WideIntegers, integer_exponents_of_other_dtypes_are_not_wrapped) {
  for (Integer base : kIntegers)
    for (Integer exponent : kIntegers)
      for (bool constant : {false, true}) {
        // 2^k wraps to 0 from the width on; -1 and 1 keep their size.
        Tensor x = integers(base.dtype, {1, 2, 2, 3, 2}), e = integers(exponent.dtype, {100, 3, 64, 2, 127});
        if (bit_width(exponent.dtype) > 16) e = integers(exponent.dtype, {65536, 3, 65536, 2, 1 << 30});
        Tensor y = pow(base, x, exponent, e, constant);
        std::vector<int64_t> expected{1, 8, 0, 9, 0};
        for (int64_t i = 0; i < 5; ++i)
          EXPECT_EQ(element_as_i64(y, i), expected[static_cast<size_t>(i)])
              << to_string(base.dtype) << " base, " << to_string(exponent.dtype) << " exponent, element "
              << i;
      }
}

TEST(WideIntegers, fractional_negative_and_odd_exponents) {
  double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  struct {
    int64_t base;
    double exponent;
    int64_t expected;
  } cases[] = {{9, 0.5, 3},  {27, 1.0 / 3, 3}, {10, 2.5, 316},
               {2, -1, 0},   {1, -3, 1},       {-1, -3, -1},
               {-1, -2, 1},  {-1, 1e30, 1},    {5, nan, 0},
               {1, nan, 1},  {3, -inf, 0},     {1, inf, 1},
               {-8, 1.5, 0}, {2, 0.0, 1},      {0, 0.0, 1},
               {0, 2.5, 0},  {16, 0.25, 2},    {1000000007, 2, 1000000014000000049}};
  for (bool constant : {false, true}) {
    std::vector<int64_t> x;
    std::vector<double> e;
    for (const auto& c : cases) x.push_back(c.base), e.push_back(c.exponent);
    Tensor y =
        pow({DType::kI64, 7}, integers(DType::kI64, x), {DType::kF64, 11}, floats(DType::kF64, e), constant);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(element_as_i64(y, static_cast<int64_t>(i)), cases[i].expected) << x[i] << " ^ " << e[i];
  }
}

TEST(WideIntegers, floats_with_exponents_that_they_do_not_hold) {
  for (bool constant : {false, true}) {
    // (-1)^(2^24 + 1) and (1 + 2^-11)^2049 depend on the exponent's last bit.
    Tensor y = pow({DType::kF32, 1}, f32_tensor({2}, {-1, -1}), {DType::kI64, 7},
                   integers(DType::kI64, {(1 << 24) + 1, 1 << 25}), constant);
    EXPECT_EQ(y.at<float>(0), -1);
    EXPECT_EQ(y.at<float>(1), 1);
    Tensor z = pow({DType::kF16, 10}, floats(DType::kF16, {-1, -1, 1.5}), {DType::kI32, 6},
                   integers(DType::kI32, {2049, 4098, -3}), constant);
    EXPECT_EQ(element_as_f64(z, 0), -1);
    EXPECT_EQ(element_as_f64(z, 1), 1);
    EXPECT_NEAR(element_as_f64(z, 2), std::pow(1.5, -3), 1e-4);
    Tensor w = pow({DType::kF32, 1}, f32_tensor({1}, {1.0001f}), {DType::kF64, 11},
                   floats(DType::kF64, {100000.25}), constant);
    double expected = std::pow(static_cast<double>(1.0001f), 100000.25);
    EXPECT_NEAR(w.at<float>(0), expected, expected * 1e-7);
  }
}

// One operator on integer tensors of one dtype.
std::vector<Tensor> run_integers(const std::string& op, Integer type,
                                 std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> operands,
                                 const std::function<void(ModelBuilder&, onnx::NodeProto&)>& finish = {},
                                 int64_t opset = 22) {
  ModelBuilder m(opset);
  std::vector<Tensor> inputs;
  std::vector<std::string> names;
  for (size_t i = 0; i < operands.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    m.input(names.back(), operands[i].first, type.type);
    inputs.push_back(integers(type.dtype, operands[i].second));
    inputs.back().dims = operands[i].first;
  }
  m.output("y");
  onnx::NodeProto& node = m.node(op, names, {"y"});
  if (finish) finish(m, node);
  return run(m, inputs);
}

TEST(WideIntegers, sums_and_products_are_exact) {
  int64_t big = (int64_t{1} << 53) + 1;
  Integer i64{DType::kI64, 7};
  auto element = [](const std::vector<Tensor>& y, int64_t i = 0) { return element_as_i64(y.at(0), i); };
  EXPECT_EQ(element(run_integers("MatMul", i64, {{{1, 2}, {big, 2}}, {{2, 1}, {3, big}}})), 5 * big);
  EXPECT_EQ(element(run_integers("Einsum", i64, {{{2}, {big, 1}}, {{2}, {3, big}}},
                                 [](auto&, auto& n) { set_string(n, "equation", "i,i->"); })),
            4 * big);
  EXPECT_EQ(element(run_integers("ReduceSum", i64, {{{2}, {big, 2}}})), big + 2);
  EXPECT_EQ(element(run_integers("ReduceL1", i64, {{{2}, {-big, 2}}})), big + 2);
  EXPECT_EQ(element(run_integers("ReduceMean", i64, {{{3}, {big, big, big}}})), big);
  EXPECT_EQ(element(run_integers("ReduceMax", i64, {{{2}, {big, big - 1}}})), big);
  EXPECT_EQ(element(run_integers("Mod", i64, {{{1}, {big}}, {{1}, {10}}})), big % 10);
  EXPECT_EQ(element(run_integers("Div", i64, {{{1}, {big}}, {{1}, {1}}})), big);
  EXPECT_EQ(element(run_integers("Clip", i64, {{{1}, {big}}, {{}, {0}}, {{}, {big + 1}}})), big);
  EXPECT_EQ(element(run_integers("CumSum", i64, {{{3}, {big, 1, 1}}},
                                 [](auto& m, auto& n) {
                                   m.ints("axis", {}, {0});
                                   n.add_input("axis");
                                 }),
                    2),
            big + 2);
  EXPECT_EQ(element(run_integers("BitShift", {DType::kU64, 13}, {{{1}, {big}}, {{1}, {1}}},
                                 [](auto&, auto& n) { set_string(n, "direction", "LEFT"); })),
            2 * big);
  EXPECT_EQ(element(run_integers("Gemm", i64, {{{1, 1}, {big}}, {{1, 1}, {1}}, {{1}, {2}}},
                                 [](auto&, auto& n) {
                                   set_float(n, "alpha", 3);
                                   set_float(n, "beta", -1);
                                 })),
            3 * big - 2);
}

TEST(WideIntegers, means_of_narrow_integers_do_not_wrap) {
  EXPECT_EQ(
      element_as_i64(
          run_integers("ReduceMean", {DType::kI32, 6}, {{{3}, {2000000000, 2000000000, 2000000003}}}).at(0),
          0),
      2000000001);
  EXPECT_EQ(element_as_i64(
                run_integers("ReduceMean", {DType::kU32, 12}, {{{2}, {4000000000, 4000000002}}}).at(0), 0),
            4000000001);
}

TEST(WideIntegers, gemm_takes_factors_that_are_not_whole) {
  auto y = run_integers("Gemm", {DType::kI32, 6}, {{{1, 2}, {3, 4}}, {{2, 1}, {2, 2}}, {{1}, {3}}},
                        [](auto&, auto& n) {
                          set_float(n, "alpha", 0.5);
                          set_float(n, "beta", 0.25);
                        });
  EXPECT_EQ(element_as_i64(y.at(0), 0), 7);  // 7.75, toward zero
}

TEST(WideIntegers, logarithms_and_norms_are_computed_in_f64) {
  Integer i64{DType::kI64, 7};
  int64_t big = int64_t{1} << 40;
  EXPECT_EQ(element_as_i64(run_integers("ReduceL2", i64, {{{2}, {3 * big, 4 * big}}}).at(0), 0), 5 * big);
  EXPECT_EQ(element_as_i64(run_integers("ReduceLogSum", i64, {{{2}, {big, big}}}).at(0), 0), 28);  // ln 2^41
  EXPECT_EQ(element_as_i64(run_integers("ReduceLogSumExp", i64, {{{2}, {50, 50}}}).at(0), 0), 50);
}

TEST(WideIntegers, ranges_count_exactly) {
  int64_t start = int64_t{1} << 60;
  for (int64_t delta : {1, -1, 2, -3}) {
    ModelBuilder m(22);
    m.ints("a", {}, {start}).set_name("a");
    m.ints("b", {}, {start + 7 * (delta > 0 ? 1 : -1)});
    m.ints("d", {}, {delta});
    m.input("x", {1}).output("y").output("x2");
    m.node("Range", {"a", "b", "d"}, {"y"});
    m.node("Identity", {"x"}, {"x2"});
    std::vector<Tensor> y = run(m, {f32_tensor({1}, {0})});
    int64_t count = (7 + std::abs(delta) - 1) / std::abs(delta);
    ASSERT_EQ(y.at(0).dims, std::vector<int64_t>{count});
    for (int64_t i = 0; i < count; ++i) EXPECT_EQ(y[0].at<int64_t>(i), start + i * delta);
  }
}

TEST(WideIntegers, one_hot_of_narrow_indices_holds_the_depth) {
  for (Integer type : {Integer{DType::kU8, 2}, Integer{DType::kI8, 3}}) {
    ModelBuilder m(22);
    m.input("i", {1}, type.type).output("y");
    m.ints("depth", {}, {300});
    m.floats("values", {2}, {0, 1});
    m.node("OneHot", {"i", "depth", "values"}, {"y"});
    std::vector<Tensor> y = run(m, {integers(type.dtype, {5})});
    double sum = 0;
    for (int64_t k = 0; k < 300; ++k) sum += element_as_f64(y.at(0), k);
    EXPECT_EQ(sum, 1);
    EXPECT_EQ(element_as_f64(y.at(0), 5), 1);
  }
}

TEST(WideIntegers, imputer_compares_integers) {
  ModelBuilder m(22);
  auto* import = m.model.add_opset_import();
  import->set_domain("ai.onnx.ml");
  import->set_version(1);
  int64_t big = (int64_t{1} << 53) + 1;
  m.input("x", {1, 2}, kInt64).output("y");
  onnx::NodeProto& node = m.node("Imputer", {"x"}, {"y"});
  node.set_domain("ai.onnx.ml");
  set_ints(node, "imputed_value_int64s", {7});
  set_int(node, "replaced_value_int64", big);
  std::vector<Tensor> y = run(m, {i64_tensor({1, 2}, {big, big - 1})});
  EXPECT_EQ(y.at(0).at<int64_t>(0), 7);
  EXPECT_EQ(y.at(0).at<int64_t>(1), big - 1);
}

}  // namespace
}  // namespace quernel::onnx_test
