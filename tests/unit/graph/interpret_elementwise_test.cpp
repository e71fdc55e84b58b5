// Hand-computed values of elementwise ops and conversions. Tests named after rows of the seed's traps say so
// by their name.
#include <gmock/gmock.h>

#include <limits>

#include "graph_testing.h"

namespace quernel {
namespace {

using testing::ElementsAre;
using testing::NanSensitiveDoubleEq;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> unary(const std::string& op, const std::string& type, const std::string& x,
                          std::string result = {}) {
  return values(evaluate("%x = constant " + type + " {" + x + "}\n%y = " + op +
                         " %x : " + (result.empty() ? type : result) + "\nreturn y = %y"));
}
std::vector<double> binary(const std::string& op, const std::string& type, const std::string& a,
                           const std::string& b, std::string result = {}) {
  return values(evaluate("%a = constant " + type + " {" + a + "}\n%b = constant " + type + " {" + b +
                         "}\n%y = " + op + " %a, %b : " + (result.empty() ? type : result) +
                         "\nreturn y = %y"));
}

TEST(InterpretUnary, signs) {
  EXPECT_THAT(unary("neg", "f32[3]", "1, -2, 0"), ElementsAre(-1, 2, 0));
  EXPECT_TRUE(std::signbit(unary("neg", "f32[1]", "0")[0]));
  EXPECT_THAT(unary("abs", "i8[3]", "-3, 3, -128"), ElementsAre(3, 3, -128));
  EXPECT_THAT(unary("sign", "f32[4]", "-2.5, 0, 7, inf"), ElementsAre(-1, 0, 1, 1));
  EXPECT_TRUE(std::isnan(unary("sign", "f32[1]", "nan")[0]));
  EXPECT_THAT(unary("sign", "u8[2]", "0, 200"), ElementsAre(0, 1));
  EXPECT_THAT(unary("neg", "u8[2]", "1, 0"), ElementsAre(255, 0));
  EXPECT_THAT(unary("neg", "bool[2]", "true, false"), ElementsAre(0, 1));
}

TEST(InterpretUnary, rounds_half_to_even) {
  EXPECT_THAT(unary("round", "f32[6]", "0.5, 1.5, 2.5, -0.5, -1.5, 2.6"), ElementsAre(0, 2, 2, 0, -2, 3));
  EXPECT_THAT(unary("floor", "f32[2]", "-1.5, 1.5"), ElementsAre(-2, 1));
  EXPECT_THAT(unary("ceil", "f32[2]", "-1.5, 1.5"), ElementsAre(-1, 2));
  EXPECT_THAT(unary("trunc", "f32[2]", "-1.5, 1.5"), ElementsAre(-1, 1));
}

TEST(InterpretUnary, functions_of_floats) {
  EXPECT_THAT(unary("sqrt", "f32[2]", "4, 2"), ElementsAre(2, 1.41421354f));
  EXPECT_THAT(unary("rsqrt", "f32[2]", "4, 0"), ElementsAre(0.5, kInf));
  EXPECT_THAT(unary("recip", "f64[2]", "4, 0"), ElementsAre(0.25, kInf));
  EXPECT_THAT(unary("exp", "f32[3]", "0, 1, -inf"), ElementsAre(1, 2.71828175f, 0));
  EXPECT_THAT(unary("exp2", "f32[2]", "3, -1"), ElementsAre(8, 0.5));
  EXPECT_THAT(unary("log", "f32[3]", "1, 0, 2.7182817"), ElementsAre(0, -kInf, 0.99999994f));
  EXPECT_THAT(unary("log2", "f32[2]", "8, 0.25"), ElementsAre(3, -2));
  EXPECT_THAT(unary("erf", "f32[3]", "0, 1, inf"), ElementsAre(0, 0.84270079f, 1));
  EXPECT_THAT(unary("tanh", "f32[2]", "0, 1"), ElementsAre(0, 0.76159418f));
  EXPECT_THAT(unary("sin", "f64[1]", "1"), ElementsAre(0.8414709848078965));
  EXPECT_TRUE(std::isnan(unary("log", "f32[1]", "-1")[0]));
}

TEST(InterpretUnary, predicates_and_bits) {
  EXPECT_THAT(unary("is_nan", "f32[3]", "nan, inf, 1", "bool[3]"), ElementsAre(1, 0, 0));
  EXPECT_THAT(unary("is_inf", "f32[3]", "nan, -inf, 1", "bool[3]"), ElementsAre(0, 1, 0));
  EXPECT_THAT(unary("not", "bool[2]", "true, false"), ElementsAre(0, 1));
  EXPECT_THAT(unary("bit_not", "i32[2]", "0, 5"), ElementsAre(-1, -6));
  EXPECT_THAT(unary("bit_not", "u8[1]", "1"), ElementsAre(254));
}

TEST(InterpretBinary, integers_wrap) {
  EXPECT_THAT(binary("add", "i8[2]", "127, -128", "1, -1"), ElementsAre(-128, 127));
  EXPECT_THAT(binary("mul", "i32[1]", "65536", "65536"), ElementsAre(0));
  EXPECT_THAT(binary("sub", "u8[1]", "1", "2"), ElementsAre(255));
}

TEST(InterpretBinary, integer_division_is_defined_everywhere) {
  EXPECT_THAT(binary("idiv", "i32[5]", "7, -7, 7, 5, -2147483648", "2, 2, -2, 0, -1"),
              ElementsAre(3, -3, -3, 0, -2147483648.0));
  EXPECT_THAT(binary("fdiv", "i32[5]", "7, -7, 7, 5, -2147483648", "2, 2, -2, 0, -1"),
              ElementsAre(3, -4, -4, 0, -2147483648.0));
  EXPECT_THAT(binary("mod", "i32[5]", "7, -7, 7, -7, 5", "3, 3, -3, -3, 0"), ElementsAre(1, 2, -2, -1, 0));
  EXPECT_THAT(binary("fmod", "i32[5]", "7, -7, 7, -7, 5", "3, 3, -3, -3, 0"), ElementsAre(1, -1, 1, -1, 0));
  EXPECT_THAT(binary("idiv", "u8[2]", "250, 250", "3, 0"), ElementsAre(83, 0));
}

TEST(InterpretBinary, float_remainders_follow_divisor_or_dividend) {
  EXPECT_THAT(binary("mod", "f32[4]", "5.5, -5.5, 5.5, -5.5", "2, 2, -2, -2"),
              ElementsAre(1.5, 0.5, -0.5, -1.5));
  EXPECT_THAT(binary("fmod", "f32[4]", "5.5, -5.5, 5.5, -5.5", "2, 2, -2, -2"),
              ElementsAre(1.5, -1.5, 1.5, -1.5));
  EXPECT_TRUE(std::isnan(binary("mod", "f32[1]", "1", "0")[0]));
}

TEST(InterpretBinary, float_division_by_zero) {
  EXPECT_THAT(binary("div", "f32[3]", "1, -1, 0", "0, 0, 0"),
              ElementsAre(kInf, -kInf, NanSensitiveDoubleEq(kNan)));
}

TEST(InterpretBinary, max_and_min_propagate_nan) {
  EXPECT_THAT(binary("max", "f32[3]", "nan, 1, 1", "1, nan, 2"),
              ElementsAre(NanSensitiveDoubleEq(kNan), NanSensitiveDoubleEq(kNan), 2));
  EXPECT_THAT(binary("min", "f32[3]", "nan, 1, 1", "1, nan, 2"),
              ElementsAre(NanSensitiveDoubleEq(kNan), NanSensitiveDoubleEq(kNan), 1));
  EXPECT_THAT(binary("max", "u64[1]", "18446744073709551615", "1"), ElementsAre(18446744073709551615.0));
  EXPECT_THAT(binary("max", "i64[1]", "-1", "1"), ElementsAre(1));
}

TEST(InterpretBinary, zero_is_above_negative_zero) {
  for (const char* zeros : {"0, -0", "-0, 0"}) {
    std::string a = zeros, b = a == "0, -0" ? "-0, 0" : "0, -0";
    for (double v : binary("max", "f32[2]", a, b)) EXPECT_FALSE(std::signbit(v));
    for (double v : binary("min", "f32[2]", a, b)) EXPECT_TRUE(std::signbit(v));
  }
}

TEST(InterpretBinary, shifts_past_the_width) {
  EXPECT_THAT(binary("shl", "i32[3]", "1, 1, 1", "31, 32, 100"), ElementsAre(-2147483648.0, 0, 0));
  EXPECT_THAT(binary("shr", "i32[3]", "-8, -8, 8", "1, 40, 40"), ElementsAre(-4, -1, 0));
  EXPECT_THAT(binary("shr", "u8[2]", "128, 128", "7, 8"), ElementsAre(1, 0));
}

TEST(InterpretBinary, powers) {
  EXPECT_THAT(binary("pow", "f32[4]", "2, 9, 0, -8", "10, 0.5, 0, 2"), ElementsAre(1024, 3, 1, 64));
  EXPECT_THAT(binary("pow", "i32[5]", "2, -3, 2, -1, 1", "10, 3, -1, -3, -5"),
              ElementsAre(1024, -27, 0, -1, 1));
}

TEST(InterpretBinary, logic_on_bool_and_bits_on_integers) {
  EXPECT_THAT(binary("and", "bool[4]", "true, true, false, false", "true, false, true, false"),
              ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(binary("xor", "bool[4]", "true, true, false, false", "true, false, true, false"),
              ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(binary("and", "i32[1]", "12", "10"), ElementsAre(8));
  EXPECT_THAT(binary("or", "u8[1]", "12", "10"), ElementsAre(14));
}

TEST(InterpretBinary, comparisons) {
  EXPECT_THAT(binary("lt", "f32[4]", "1, 2, nan, 1", "2, 2, 1, nan", "bool[4]"), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(binary("ne", "f32[2]", "nan, 1", "nan, 1", "bool[2]"), ElementsAre(1, 0));
  EXPECT_THAT(binary("gt", "u64[1]", "18446744073709551615", "1", "bool[1]"), ElementsAre(1));
  EXPECT_THAT(binary("gt", "i64[1]", "-1", "1", "bool[1]"), ElementsAre(0));
}

TEST(InterpretBinary, half_floats_round_once_per_op) {
  EXPECT_THAT(binary("add", "f16[2]", "2048, 2048", "1, 3"), ElementsAre(2048, 2052));  // ties to even
  EXPECT_THAT(binary("mul", "f16[1]", "256", "256"), ElementsAre(kInf));
  EXPECT_THAT(binary("add", "bf16[2]", "256, 256", "1, 3"), ElementsAre(256, 260));
}

TEST(InterpretTernary, select_clamp_and_multiply_add) {
  EXPECT_THAT(
      values(evaluate(
          "%c = constant bool[2] {true, false}\n%a = constant f32[2] {1, 2}\n%b = constant f32[2] {3, 4}\n"
          "%y = where %c, %a, %b : f32[2]\nreturn y = %y")),
      ElementsAre(1, 4));
  EXPECT_THAT(values(evaluate("%x = constant f32[4] {-5, 0.5, 5, nan}\n%lo = constant f32[4] {-1 ...}\n%hi = "
                              "constant f32[4] {1 ...}\n"
                              "%y = clamp %x, %lo, %hi : f32[4]\nreturn y = %y")),
              ElementsAre(-1, 0.5, 1, NanSensitiveDoubleEq(kNan)));
  // (1 + 2^-12)^2 - 1 keeps its last bit only if the product is not rounded.
  EXPECT_THAT(values(evaluate("%a = constant f32[1] {0x1.001p+0}\n%c = constant f32[1] {-1}\n%y = mulacc %a, "
                              "%a, %c : f32[1]\nreturn y = %y")),
              ElementsAre(0x1p-11 + 0x1p-24));
}

// ---- seed traps ----
TEST(SeedTraps, fused_chain) {
  EXPECT_THAT(
      values(evaluate("%x = constant f32[3] {1, 2, 3}\n%1 = add %x, %x : f32[3]\n%2 = mul %1, %x : f32[3]\n"
                      "%3 = neg %2 : f32[3]\nreturn y = %3")),
      ElementsAre(-2, -8, -18));
}

TEST(SeedTraps, const_operand) {
  EXPECT_THAT(binary("add", "f32[4]", "0.1, 16777217, -0.0, 1e-45", "0, 0, -0.0, 0"),
              ElementsAre(0.100000001490116119384765625, 16777216, -0.0, 0x1p-149));
  EXPECT_THAT(binary("mul", "f32[3]", "inf, -inf, nan", "1, 1, 1"),
              ElementsAre(kInf, -kInf, NanSensitiveDoubleEq(kNan)));
}

TEST(SeedTraps, compare_then_select) {
  EXPECT_THAT(values(evaluate("%a = constant f32[3] {0.25, 0.5, 3}\n%b = constant f32[3] {0.5, 0.25, 4}\n"
                              "%c = lt %a, %b : bool[3]\n%y = where %c, %a, %b : f32[3]\nreturn y = %y")),
              ElementsAre(0.25, 0.25, 3));
}

TEST(SeedTraps, vconst_data) {
  EXPECT_THAT(values(evaluate("%x = constant i16[5] {1, -2, 3, -32768, 32767}\nreturn y = %x")),
              ElementsAre(1, -2, 3, -32768, 32767));
}

TEST(SeedTraps, cast_values) {
  EXPECT_THAT(unary("cast", "f32[7]", "1.9, -1.9, nan, 3e9, -3e9, inf, -inf", "i32[7]"),
              ElementsAre(1, -1, 0, 2147483647, -2147483648.0, 2147483647, -2147483648.0));
  EXPECT_THAT(unary("cast", "f32[4]", "-1, 255.9, 256, nan", "u8[4]"), ElementsAre(0, 255, 255, 0));
  EXPECT_THAT(unary("cast", "f32[3]", "0, -0.5, nan", "bool[3]"), ElementsAre(0, 1, 1));
  EXPECT_THAT(unary("cast", "i32[3]", "300, -1, 128", "i8[3]"), ElementsAre(44, -1, -128));
  EXPECT_THAT(unary("cast", "i32[2]", "16777217, -16777219", "f32[2]"), ElementsAre(16777216, -16777220));
  EXPECT_THAT(unary("cast", "u64[1]", "18446744073709551615", "f64[1]"), ElementsAre(18446744073709551616.0));
  EXPECT_THAT(unary("cast", "f32[5]", "65504, 65520, 1e-8, 2049, 1.00048828125", "f16[5]"),
              ElementsAre(65504, kInf, 0, 2048, 1));
  EXPECT_THAT(unary("cast", "f32[2]", "257, 3.0e38", "bf16[2]"), ElementsAre(256, 0x1.c4p+127));
  EXPECT_THAT(unary("cast", "f64[2]", "1e300, 5e-324", "i64[2]"), ElementsAre(9223372036854775807.0, 0));
  EXPECT_THAT(unary("cast", "i8[5]", "-8, 7, 8, -1, 3", "i4[5]"), ElementsAre(-8, 7, -8, -1, 3));
  EXPECT_THAT(unary("cast", "f32[5]", "448, 1000, 0.0625, -inf, 1.0625", "f8e4m3[5]"),
              ElementsAre(448, 448, 0.0625, -448, 1));
  EXPECT_THAT(unary("cast", "f32[3]", "1.25, 1.125, 1e-9", "f8e5m2[3]"), ElementsAre(1.25, 1, 0));
}

TEST(SeedTraps, bitcast_resize) {
  EXPECT_THAT(values(evaluate("%x = constant u8[2,4] {1, 0, 0, 0, 255, 255, 255, 127}\n%y = bitcast %x : "
                              "u32[2,1]\nreturn y = %y")),
              ElementsAre(1, 2147483647));
  EXPECT_THAT(values(evaluate("%x = constant f32[1] {1}\n%y = bitcast %x : u8[4]\nreturn y = %y")),
              ElementsAre(0, 0, 128, 63));
  EXPECT_THAT(values(evaluate("%x = constant f32[] {-0.0}\n%y = bitcast %x : i32[]\nreturn y = %y")),
              ElementsAre(-2147483648.0));
}

TEST(SeedTraps, tail_guard) {
  std::string many = "%x = constant f32[1027] {2 ...}\n%y = mul %x, %x : f32[1027]\nreturn y = %y";
  EXPECT_THAT(values(evaluate(many)), testing::Each(4.0));
  EXPECT_EQ(values(evaluate(many)).size(), 1027u);
  EXPECT_THAT(values(evaluate("%x = constant f32[] {3}\n%y = mul %x, %x : f32[]\nreturn y = %y")),
              ElementsAre(9));
  EXPECT_THAT(values(evaluate("%x = constant f32[2,0] {}\n%y = exp %x : f32[2,0]\nreturn y = %y")),
              ElementsAre());
}

TEST(SeedTraps, noop_passthrough) {
  Graph graph = graph_of("graph @g(%x: f32[2]) {\n return y = %x, z = %x\n}");
  std::vector<Tensor> outputs = run(graph, {f32_tensor({2}, {1, 2})});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_THAT(values(outputs[1]), ElementsAre(1, 2));
}

TEST(SeedTraps, missing_input_wrong_dtype_short_buffer) {
  Graph graph = graph_of("graph @g(%x: f32[2], %y: i32[]) {\n %z = neg %x : f32[2]\n return z = %z\n}");
  auto message = [&](const std::vector<Tensor>& inputs) {
    return to_string(interpret(graph, inputs).errors());
  };
  Tensor x = f32_tensor({2}, {1, 2}), y = make_tensor<int32_t>(DType::kI32, {}, {1});
  EXPECT_THAT(message({x}), testing::HasSubstr("expected 2 inputs, found 1"));
  EXPECT_THAT(message({x, x}), testing::HasSubstr("input 'y': expected i32[], found f32[2]"));
  EXPECT_THAT(message({f32_tensor({2}, {1}), y}), testing::HasSubstr("input 'x': expected 8 bytes, found 4"));
}

}  // namespace
}  // namespace quernel
