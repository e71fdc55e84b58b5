// The interpreter: known answers, and every access checked.
#include "loop/interpret.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "loop/evaluate_scalar.h"
#include "run_kernel.h"

namespace quernel::loop {
namespace {

template <class T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> values_of(const std::vector<uint8_t>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(Interpret, runs_all_workgroups_with_symbols) {
  Kernel kernel = parsed(R"(kernel @k symbols($n) grid(a: 2, b: $n) {
  buffer %x: f32[6] read binding 0
  buffer %y: f32[6] readwrite binding 1
  alloc %acc: f32[1] register
  %acc[0] = 0f32
  for k in reduction(a + 1) {
    %acc[0] = mulacc(%x[b], 2f32, %acc[0])
  }
  %y[a * $n + b] = %acc[0]
}
)");
  std::string error;
  Bytes after =
      run(kernel, {bytes_of<float>({1, 2, 3, 0, 0, 0}), bytes_of<float>(std::vector<float>(6))}, &error, {3});
  EXPECT_EQ(error, "");
  EXPECT_EQ(values_of<float>(after[1]), (std::vector<float>{2, 4, 6, 4, 8, 12}));
}

TEST(Interpret, dot_multiplies_bytes_as_their_words_say) {
  Kernel kernel = parsed(R"(kernel @k {
  buffer %x: u8[8] read binding 0
  buffer %y: i32[4] write binding 1
  let a: u32 = bitcast(u32, %x[ramp(0, 1, 4)])
  let b: u32 = bitcast(u32, %x[ramp(4, 1, 4)])
  %y[0] = dot(a, b, 5i32)
  %y[1] = dot(a, bitcast(i32, b), 5i32)
  %y[2] = dot(bitcast(i32, a), b, 5i32)
  %y[3] = dot(bitcast(i32, a), bitcast(i32, b), 2147483647i32)
}
)");
  std::string error;
  Bytes after = run(kernel, {{255, 128, 3, 0, 254, 127, 200, 9}, bytes_of<int32_t>({0, 0, 0, 0})}, &error);
  EXPECT_EQ(error, "");
  int unsigned_both = 255 * 254 + 128 * 127 + 3 * 200, b_signed = 255 * -2 + 128 * 127 + 3 * -56,
      a_signed = -1 * 254 - 128 * 127 + 3 * 200;
  EXPECT_EQ(values_of<int32_t>(after[1]), (std::vector<int32_t>{unsigned_both + 5, b_signed + 5, a_signed + 5,
                                                                2147483647 + (2 - 128 * 127 - 3 * 56)}));
}

TEST(Interpret, dot_2x2_multiplies_two_rows_by_two_columns) {
  Kernel kernel = parsed(R"(kernel @k {
  buffer %x: i32[8] read binding 0
  buffer %y: i32[4] write binding 1
  %y[ramp(0, 1, 4)] = dot_2x2(%x[ramp(0, 1, 4)], bitcast(u32x4, %x[ramp(4, 1, 4)]), splat(7i32, 4))
}
)");
  std::string error;
  // Bytes of the rows: (1 ... 1) and (-1, 0 ... 0, 2); of the columns: (255, 0 ...) and (0, 0, 0, 0, 10, 0, 0, 100).
  Bytes after = run(kernel,
                    {bytes_of<int32_t>({0x01010101, 0x01010101, 0xff, 0x02000000, 0xff, 0, 0, 0x6400000a}),
                     bytes_of<int32_t>({0, 0, 0, 0})},
                    &error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(values_of<int32_t>(after[1]), (std::vector<int32_t>{255 + 7, 110 + 7, -255 + 7, 200 + 7}));
}

// The first operand lies by rows, the second one and the result by columns.
TEST(Interpret, matrices_are_multiplied_and_added) {
  Kernel kernel = parsed(R"(kernel @k {
  buffer %x: f16[6] read binding 0
  buffer %w: f16[6] read binding 1
  buffer %y: f32[4] write binding 2
  alloc %s: f32[4] matrix
  for i in serial(2) {
    multiply_matrices(2, 2, 3) %s += %x[0, 3, 1] * %w[0, 1, 3]
  }
  store_matrix(2, 2) %y[0, 1, 2] = %s
}
)");
  auto halves = [](const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    for (float value : values) bits.push_back(f32_to_f16_bits(value));
    return bytes_of<uint16_t>(bits);
  };
  std::string error;
  Bytes after = run(
      kernel, {halves({1, 2, 3, 4, 5, 6}), halves({1, 0, 0.5f, -1, 10, 100}), bytes_of<float>({0, 0, 0, 0})},
      &error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(values_of<float>(after[2]), (std::vector<float>{5, 14, 2 * 319, 2 * 646}));
}

TEST(Interpret, matrices_of_bytes_have_sums_of_32_bits) {
  for (bool is_signed : {false, true}) {
    std::string text = R"(kernel @k {
  buffer %x: u8[4] read binding 0
  buffer %w: u8[4] read binding 1
  buffer %y: i32[4] write binding 2
  alloc %s: i32[4] matrix
  multiply_matrices(2, 2, 2) %s += %x[0, 2, 1] * %w[0, 2, 1]
  store_matrix(2, 2) %y[0, 2, 1] = %s
}
)";
    for (size_t at = 0; is_signed && (at = text.find("u8", at)) != std::string::npos;)
      text.replace(at, 2, "i8");
    Kernel kernel = parsed(text);
    std::string error;
    Bytes after = run(kernel, {{255, 2, 3, 128}, {200, 1, 1, 255}, bytes_of<int32_t>({0, 0, 0, 0})}, &error);
    EXPECT_EQ(error, "");
    const std::vector<int32_t> of_unsigned = {255 * 200 + 2, 255 + 2 * 255, 600 + 128, 3 + 128 * 255},
                               of_signed = {56 + 2, -1 - 2, 3 * -56 - 128, 3 + 128};
    EXPECT_EQ(values_of<int32_t>(after[2]), is_signed ? of_signed : of_unsigned);
  }
}

TEST(Interpret, dot_adds_two_products_to_each_half_of_a_word) {
  Kernel kernel = parsed(R"(kernel @k {
  buffer %x: u8[8] read binding 0
  buffer %y: u32[2] write binding 1
  let a: u32 = bitcast(u32, %x[ramp(0, 1, 4)])
  let b: i32 = bitcast(i32, %x[ramp(4, 1, 4)])
  %y[0] = dot(a, b, 0u32)
  %y[1] = dot(a, b, 65535u32)
}
)");
  std::string error;
  Bytes after = run(kernel, {{15, 14, 3, 0, 254, 127, 200, 9}, bytes_of<uint32_t>({0, 0})}, &error);
  EXPECT_EQ(error, "");
  const uint32_t lower = 15 * -2 + 14 * 127, upper = static_cast<uint16_t>(3 * -56);
  EXPECT_EQ(values_of<uint32_t>(after[1]),
            (std::vector<uint32_t>{lower | upper << 16, (lower - 1) | upper << 16}));
}

TEST(Interpret, dot_of_halves_adds_the_upper_product_first) {
  Kernel kernel = parsed(R"(kernel @k {
  buffer %x: bf16[4] read binding 0
  buffer %y: f32[2] write binding 1
  let a: u32 = bitcast(u32, %x[ramp(0, 1, 2)])
  let b: u32 = bitcast(u32, %x[ramp(2, 1, 2)])
  %y[0] = dot(a, b, 5f32)
  %y[1] = dot(a, b, -12288f32)
}
)");
  // 1.5 * 2^-11 and 3 * 2^12: beside a sum of 2^13 and more the lower product is rounded to 2^-10.
  auto bf16 = [](float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); };
  std::string error;
  Bytes after =
      run(kernel,
          {bytes_of<uint16_t>({bf16(1.5F), bf16(3), bf16(0x1p-11F), bf16(0x1p12F)}), bytes_of<float>({0, 0})},
          &error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(values_of<float>(after[1]), (std::vector<float>{12293 + 0x1p-10F, 0x1.8p-11F}));
}

TEST(Interpret, reports_kernel_buffer_index_and_size) {
  Kernel kernel = parsed(
      "kernel @k {\n  buffer %x: f32[4] read binding 0\n  buffer %y: f32[8] write binding 1\n"
      "  for i in serial(8) {\n    %y[i] = %x[i]\n  }\n}\n");
  std::string error;
  run(kernel, seeded_buffers(kernel, 1), &error);
  EXPECT_NE(error.find("node 'k': index 4 is outside buffer '%x' of 4 elements"), std::string::npos) << error;
  kernel = parsed("kernel @k {\n  buffer %y: f32[8] write binding 0\n  let i: i64 = -1\n  %y[i] = 0f32\n}\n");
  run(kernel, seeded_buffers(kernel, 1), &error);
  EXPECT_NE(error.find("index -1 is outside buffer '%y' of 8 elements"), std::string::npos) << error;
}

TEST(Interpret, guards_touch_no_memory) {
  Kernel kernel = parsed(
      "kernel @k {\n  buffer %x: f32[4] read binding 0\n  buffer %y: f32[4] write binding 1\n"
      "  %y[ramp(2, 1, 4) if ramp(2, 1, 4) < splat(4, 4)] = "
      "%x[ramp(-1, 1, 4) if ramp(-1, 1, 4) >= splat(0, 4) else splat(7f32, 4)]\n}\n");
  std::string error;
  Bytes after = run(kernel, {bytes_of<float>({1, 2, 3, 4}), bytes_of<float>({0, 0, 0, 0})}, &error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(values_of<float>(after[1]), (std::vector<float>{0, 0, 7, 1}));
}

TEST(Interpret, checks_its_arguments) {
  Kernel kernel = parsed("kernel @k symbols($n) {\n  buffer %x: f32[4] read binding 0\n}\n");
  std::string error;
  run(kernel, {}, &error, {1});
  EXPECT_NE(error.find("expected 1 bindings, found 0"), std::string::npos);
  run(kernel, {std::vector<uint8_t>(15)}, &error, {1});
  EXPECT_NE(error.find("buffer '%x' expected 16 bytes, found 15"), std::string::npos);
  run(kernel, {std::vector<uint8_t>(16)}, &error);
  EXPECT_NE(error.find("expected 1 symbols, found 0"), std::string::npos);
}

TEST(Interpret, bitcasts_across_lanes_and_packed_storage) {
  Kernel kernel = parsed(
      "kernel @k {\n  buffer %x: u32[1] read binding 0\n  buffer %y: u8[4] write binding 1\n"
      "  buffer %n: i4[4] readwrite binding 2\n"
      "  %y[ramp(0, 1, 4)] = bitcast(u8x4, %x[0])\n"
      "  %n[ramp(0, 1, 3)] = cast(i4, cast(i32, %n[ramp(1, 1, 3)]))\n}\n");
  std::string error;
  Bytes after =
      run(kernel, {bytes_of<uint32_t>({0x04030201}), bytes_of<uint32_t>({0}), {0x21, 0xf3}}, &error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(values_of<uint8_t>(after[1]), (std::vector<uint8_t>{1, 2, 3, 4}));
  EXPECT_EQ(after[2], (std::vector<uint8_t>{0x32, 0xff}));  // [1 2 3 -1] became [2 3 -1 -1]
}

int64_t eval_int(BinaryOp op, DType dtype, int64_t a, int64_t b) {
  return bits_to_int(dtype, evaluate_binary(op, dtype, int_to_bits(dtype, a), int_to_bits(dtype, b)));
}

TEST(EvaluateScalar, integer_division) {
  EXPECT_EQ(eval_int(BinaryOp::k_idiv, DType::kI32, -7, 2), -3);
  EXPECT_EQ(eval_int(BinaryOp::k_fdiv, DType::kI32, -7, 2), -4);
  EXPECT_EQ(eval_int(BinaryOp::k_mod, DType::kI32, -7, 3), 2);
  EXPECT_EQ(eval_int(BinaryOp::k_mod, DType::kI32, 7, -3), -2);
  EXPECT_EQ(eval_int(BinaryOp::k_fmod, DType::kI32, -7, 3), -1);
  for (BinaryOp op : {BinaryOp::k_div, BinaryOp::k_idiv, BinaryOp::k_fdiv, BinaryOp::k_mod, BinaryOp::k_fmod})
    EXPECT_EQ(eval_int(op, DType::kI64, 5, 0), 0);
  EXPECT_EQ(eval_int(BinaryOp::k_idiv, DType::kI32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(eval_int(BinaryOp::k_fdiv, DType::kI64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(eval_int(BinaryOp::k_idiv, DType::kU8, 200, 3), 66);
}

TEST(EvaluateScalar, shifts_powers_and_wrapping) {
  EXPECT_EQ(eval_int(BinaryOp::k_shl, DType::kU8, 1, 8), 0);
  EXPECT_EQ(eval_int(BinaryOp::k_shr, DType::kI8, -128, 9), -1);
  EXPECT_EQ(eval_int(BinaryOp::k_shr, DType::kU8, 128, 7), 1);
  EXPECT_EQ(eval_int(BinaryOp::k_add, DType::kI8, 127, 1), -128);
  EXPECT_EQ(eval_int(BinaryOp::k_mul, DType::kU8, 16, 17), 16);
  EXPECT_EQ(eval_int(BinaryOp::k_pow, DType::kI32, 3, 4), 81);
  EXPECT_EQ(eval_int(BinaryOp::k_pow, DType::kI32, -1, -3), -1);
  EXPECT_EQ(eval_int(BinaryOp::k_lt, DType::kU64, -1, 1), 0);
}

TEST(EvaluateScalar, casts_saturate_and_round_once) {
  auto to_int = [](double value, DType to) {
    return bits_to_int(to, evaluate_cast(DType::kF64, to, double_to_bits(DType::kF64, value)));
  };
  EXPECT_EQ(to_int(-1.9, DType::kI32), -1);
  EXPECT_EQ(to_int(1e20, DType::kI64), INT64_MAX);
  EXPECT_EQ(to_int(-1e20, DType::kI32), INT32_MIN);
  EXPECT_EQ(to_int(-3, DType::kU8), 0);
  EXPECT_EQ(to_int(300, DType::kU8), 255);
  EXPECT_EQ(to_int(9, DType::kI4), 7);
  EXPECT_EQ(to_int(std::nan(""), DType::kI32), 0);
  EXPECT_EQ(to_int(std::nan(""), DType::kBool), 1);
  // 2^24 + 1 + a little: to f32 directly, not through f64's neighbour.
  EXPECT_EQ(evaluate_cast(DType::kI64, DType::kF32, (uint64_t{1} << 60) + (uint64_t{1} << 36) + 1),
            double_to_bits(DType::kF32, 0x1.000002p60));
}

TEST(EvaluateScalar, float8_is_exact_on_its_own_values) {
  for (DType dtype : {DType::kF8E4M3, DType::kF8E5M2})
    for (uint64_t bits = 0; bits < 256; ++bits) {
      double value = bits_to_double(dtype, bits);
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(double_to_bits(dtype, value), bits);
    }
  EXPECT_EQ(double_to_bits(DType::kF8E4M3, 1e9), 0x7eu);
  EXPECT_EQ(double_to_bits(DType::kF8E4M3, -449), 0xfeu);
  EXPECT_EQ(bits_to_double(DType::kF8E4M3, double_to_bits(DType::kF8E4M3, 17)), 16);  // tie to even
}

TEST(EvaluateScalar, floats_propagate_nan_and_round_half_to_even) {
  uint64_t nan = double_to_bits(DType::kF32, std::nan("")), one = double_to_bits(DType::kF32, 1);
  for (BinaryOp op : {BinaryOp::k_max, BinaryOp::k_min}) {
    EXPECT_TRUE(std::isnan(bits_to_double(DType::kF32, evaluate_binary(op, DType::kF32, nan, one))));
    EXPECT_TRUE(std::isnan(bits_to_double(DType::kF32, evaluate_binary(op, DType::kF32, one, nan))));
  }
  auto rounded = [](double v) {
    return bits_to_double(DType::kF16,
                          evaluate_unary(UnaryOp::k_round, DType::kF16, double_to_bits(DType::kF16, v)));
  };
  EXPECT_EQ(rounded(2.5), 2);
  EXPECT_EQ(rounded(-3.5), -4);
}

}  // namespace
}  // namespace quernel::loop
