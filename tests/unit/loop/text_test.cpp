// print and parse: text -> kernel -> text is exact, constants keep their bits, errors say the line.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "loop/passes.h"
#include "random_kernel.h"
#include "run_kernel.h"

namespace quernel::loop {
namespace {

TEST(Text, round_trips_every_construct) {
  const std::string text = R"(kernel @k0 symbols($n, $m) grid(wg0: 4, wg1: $n * 2) {
  buffer %x: f32[1024] read binding 0
  buffer %y: f32[1024] write binding 1 overlapping
  buffer %q: i4[64] readwrite binding 2 aligned
  alloc %acc: f32[32] register
  alloc %tile: f16[64] shared
  for k in reduction(64) {
    let a: f32 = %x[wg0 * 256 + k]
    %acc[ramp(0, 1, 16)] = mulacc(broadcast(a, 16), %x[ramp(k * 16, 1, 16)], %acc[ramp(0, 1, 16)])
  }
  barrier
  prefetch %x[wg0 * 256 + 2048]
  if wg0 - (wg1 - 1) < 10 {
    %y[wg0 if wg0 < $m] = %x[wg1 if and(wg1 < 4, not(wg0 == 2)) else -0f32]
  } else {
    %y[0] = select(true, 1.5f32, exp(abs(%x[3])))
  }
  for i in serial($n) {
    for u in unrolled(2) {
      for v in vector(4) {
        %y[(i + u) * 4 - v * (2 + i)] = cast(f32, idiv(i, 3) - (u - -1)) / 3f32 / (2f32 / %x[0])
      }
    }
  }
  {
    let b: u8x4 = bitcast(u8x4, 7u32)
    let c: boolx4 = b < splat(3u8, 4)
    %y[1] = select(reduce_lanes(or, c), f32(0x7fc00000), f32(0xff800000))
    %y[2] = cast(f32, reduce_lanes(add, cast(i32, b)))
    %q[3] = cast(i4, cast(i32, %q[2]) + -7i32)
    let f: u8x4 = interleave_lower(b, interleave_upper(b, splat(1u8, 4)))
    let g: i32 = dot(7u32, bitcast(i32, b), -3i32)
    let h: i32x4 = dot_2x2(splat(7u32, 4), splat(3i32, 4), splat(-3i32, 4))
    let d: bool = not(is_nan(1f64)) == (2 < 3)
    let e: bool = (1 < 2) == d
  }
}
)";
  Kernel kernel = parsed(text);
  EXPECT_EQ(to_string(kernel), text);
  Status status = verify(kernel);
  EXPECT_TRUE(status) << quernel::to_string(status.errors());
}

constexpr const char* kMatrices = R"(kernel @k {
  buffer %x: f16[96] read binding 0
  buffer %w: f16[64] read binding 1
  buffer %y: f32[24] write binding 2
  buffer %p: u8[48] read binding 3
  buffer %z: i32[24] write binding 4
  alloc %s: f32[24] matrix
  alloc %t: i32[24] matrix
  for i in serial(2) {
    multiply_matrices(6, 4, 8) %s += %x[i * 48, 8, 1] * %w[i * 32, 1, 8]
  }
  store_matrix(6, 4) %y[0, 1, 6] = %s
  multiply_matrices(6, 4, 8) %t += %p[0, 8, 1] * %p[0, 4, 1]
  store_matrix(6, 4) %z[0, 4, 1] = %t
}
)";

TEST(Text, round_trips_products_of_matrices) {
  Kernel kernel = parsed(kMatrices);
  EXPECT_EQ(to_string(kernel), kMatrices);
  Status status = verify(kernel);
  EXPECT_TRUE(status) << quernel::to_string(status.errors());
  for (auto pass : {simplify, vectorize_loops, unroll_loops}) {
    pass(kernel);
    EXPECT_EQ(to_string(kernel), kMatrices);
  }
}

TEST(Text, round_trips_random_kernels_and_what_passes_make_of_them) {
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    Kernel kernel = random_kernel(seed);
    for (auto pass : {simplify, vectorize_loops, unroll_loops}) {
      std::string text = to_string(kernel);
      Kernel again = parsed(text);
      ASSERT_EQ(to_string(again), text);
      ASSERT_TRUE(verify(again));
      pass(kernel);
    }
  }
}

TEST(Text, constants_keep_their_bits) {
  std::vector<Expr> constants;
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kF8E4M3, DType::kF8E5M2})
    for (double value :
         {0.0, -0.0, 1.0, -1.5, 0.1, 3.14159265358979, 1e-45, 5e-324, 65504.0, 448.0, 1e30, 1e300})
      constants.push_back(const_float(dtype, value));
  for (uint64_t bits : {0x7f800000u, 0xff800000u, 0x7fc00001u, 0x00000001u, 0x7f7fffffu, 0x3dcccccdu})
    constants.push_back(const_bits({DType::kF32, 1}, bits));
  for (uint64_t bits = 0; bits < 65536; bits += 97) {
    constants.push_back(const_bits({DType::kF16, 1}, bits));
    constants.push_back(const_bits({DType::kBF16, 1}, bits));
  }
  for (int64_t value : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    constants.push_back(const_int(DType::kI64, value));
    constants.push_back(const_int(DType::kU64, value));
    constants.push_back(const_int(DType::kI8, value));
    constants.push_back(const_int(DType::kU4, value));
    constants.push_back(const_int(DType::kI4, value));
  }
  for (const Expr& constant : constants) {
    std::string name(quernel::to_string(constant->type.dtype));
    std::string text =
        "kernel @k {\n  alloc %b: " + name + "[1] register\n  %b[0] = " + to_string(constant) + "\n}\n";
    Kernel kernel = parsed(text);
    ASSERT_EQ(kernel.body->body.size(), 2u) << text;
    EXPECT_EQ(kernel.body->body[1]->value->bits, constant->bits) << text;
    EXPECT_EQ(to_string(kernel), text);
  }
}

TEST(Text, accepts_comments_and_any_layout) {
  Kernel kernel =
      parsed("# before\nkernel @k{buffer %y:f32[2]write binding 0 # here\n%y[0]=1f32 %y[1]=2f32}");
  EXPECT_EQ(to_string(kernel),
            "kernel @k {\n  buffer %y: f32[2] write binding 0\n  %y[0] = 1f32\n  %y[1] = 2f32\n}\n");
}

struct BadText {
  const char* text;
  int line;
  const char* message;
};

TEST(Text, errors_say_the_line_and_what_was_expected) {
  const BadText kBad[] = {
      {"kernle @k {}", 1, "expected 'kernel', found 'kernle'"},
      {"kernel @k {\n  frob\n}", 2,
       "expected a statement (for, if, let, alloc, barrier, prefetch, multiply_matrices, store_matrix, a "
       "store or a block), found 'frob'"},
      {"kernel @k {\n  let a: f32 = 1\n}", 2, "expected a value of type f32, found i64"},
      {"kernel @k {\n\n  let a: i64 = b\n}", 3, "variable 'b' is not declared"},
      {"kernel @k {\n  %y[0] = 1f32\n}", 2, "buffer '%y' is not declared"},
      {"kernel @k {\n  let a: i64 = 1\n  let a: i64 = 2\n}", 3, "variable 'a' is declared twice"},
      {"kernel @k {\n  let a: i64 = 1 + 2f32\n}", 2, "expected operands of one type, found i64 and f32"},
      {"kernel @k {\n  let a: i8 = 300i8\n}", 2, "expected a number that i8 holds, found '300'"},
      {"kernel @k {\n  let a: i64 = sine(1)\n}", 2, "operation 'sine' is not known"},
      {"kernel @k {\n  let a: f33 = 1\n}", 2, "expected a type such as f32 or f32x8, found 'f33'"},
      {"kernel @k {\n  for i in parallel(4) {\n  }\n}", 2,
       "expected serial, reduction, unrolled or vector, found 'parallel'"},
      {"kernel @k {\n  if 1 {\n  }\n}", 2, "expected a condition of type bool, found i64"},
      {"kernel @k {\n", 2,
       "expected a statement (for, if, let, alloc, barrier, prefetch, multiply_matrices, store_matrix, a "
       "store or a block), found the end of "
       "the text"},
      {"kernel @k {\n  buffer %y: f32[4] write binding 0\n  store_matrix(2, 2) %y[0, 2, 1] = %y\n}", 3,
       "expected a matrix buffer, found '%y'"},
      {"kernel @k {\n  let a: f32 = f32(0x1ffffffff)\n}", 2,
       "expected 32 bits in hexadecimal, found '1ffffffff'"},
      {"kernel @k {\n  let a: i64 = $n\n}", 2, "symbol '$n' is not declared"},
      {"kernel @k {\n  let 1a: i64 = 1\n}", 2, "expected a variable name, found '1a'"},
      {"kernel @k {\n  let a: f32x1 = 1\n}", 2, "expected a number of lanes from 2, found '1'"},
      {"kernel @k {\n  let a: i64x2 = ramp(0, 1, 1)\n}", 2, "expected a number of lanes from 2, found 1"},
      {"kernel @k {\n  buffer %x: f32[1] inout binding 0\n}", 2,
       "expected read, write or readwrite, found 'inout'"},
      {"kernel @k {\n  buffer %x: i32[1] read binding 0 below zero\n}", 2,
       "expected a number above all elements, found 'zero'"},
      {"kernel @k {\n  buffer %x: f32[1] read binding 0\n  buffer %x: f32[1] read binding 1\n}", 3,
       "buffer '%x' is declared twice"},
      {"kernel @k symbols($n, $n) {\n}", 1, "symbol '$n' is declared twice"},
      {"kernel @k {\n  alloc %x: f32[1] heap\n}", 2, "expected register, shared or matrix, found 'heap'"},
      {"kernel @k {\n  for i in serial(4i32) {\n  }\n}", 2, "expected an extent of type i64, found i32"},
      {"kernel @k {\n  let a: i64 = 1bool\n}", 2, "expected a number's dtype such as f32, found 'bool'"},
      {"kernel @k {\n  let b: i64 = 1\n  let a: i64x2 = splat(b, 2)\n}", 3, "expected a constant to splat"},
      {"kernel @k {\n  let a: i64x2 = splat(splat(1, 2), 2)\n}", 2, "expected a scalar, found i64x2"},
      {"kernel @k {\n  let a: i64 = reduce_lanes(sine, 1)\n}", 2, "expected an operation, found 'sine'"},
      {"kernel @k {\n  let a: f32 = cast(f32x2, 1)\n}", 2, "expected the dtype to cast to, found f32x2"},
      {"kernel @k {\n}\nrest", 3, "expected the end of the text after the kernel, found 'rest'"},
  };
  for (const BadText& bad : kBad) {
    Expected<Kernel> kernel = parse_kernel(bad.text, "k.loop");
    ASSERT_FALSE(kernel) << bad.text;
    EXPECT_EQ(kernel.errors()[0].message, bad.message) << bad.text;
    EXPECT_EQ(kernel.errors()[0].place.line, bad.line) << bad.text;
    EXPECT_EQ(kernel.errors()[0].place.file, "k.loop");
  }
}

TEST(Text, refuses_hostile_nesting) {
  std::string deep = "kernel @k {\n  let a: i64 = " + std::string(100000, '(') + "1";
  Expected<Kernel> deep_kernel = parse_kernel(deep);
  ASSERT_FALSE(deep_kernel);
  EXPECT_EQ(deep_kernel.errors()[0].message, "expressions are nested too deeply");
  std::string blocks = "kernel @k {" + std::string(100000, '{');
  Expected<Kernel> blocks_kernel = parse_kernel(blocks);
  ASSERT_FALSE(blocks_kernel);
  EXPECT_EQ(blocks_kernel.errors()[0].message, "statements are nested too deeply");
}

// Every single-character damage of a kernel either parses or is refused; neither crashes.
TEST(Text, survives_damage) {
  const std::string text = R"(kernel @k symbols($n) grid(w: $n) {
  buffer %x: f32[16] readwrite binding 0
  alloc %t: i8[4] register
  for v in vector(8) {
    let a: f32x8 = %x[ramp(w * 8, 1, 8) if w < 2 else splat(-1.5e+10f32, 8)]
    if v == 3 {
      %x[v if true] = select(a < f32(0x7fc00000), reduce_lanes(add, a), exp(bitcast(f32, 7i32)))
    }
  }
}
)";
  for (size_t i = 0; i < text.size(); ++i)
    for (char c : {'\0', '%', '(', '}', '9', 'x', '-', '.'}) {
      std::string damaged = text;
      damaged[i] = c;
      if (Expected<Kernel> kernel = parse_kernel(damaged)) (void)verify(*kernel);
      if (c == '%' && i % 16 == 0) (void)parse_kernel(text.substr(0, i)).has_value();
    }
}

TEST(Text, parses_several_kernels) {
  auto kernels = parse_kernels("kernel @a {\n}\nkernel @b {\n}\n");
  ASSERT_TRUE(kernels);
  ASSERT_EQ(kernels->size(), 2u);
  EXPECT_EQ((*kernels)[1].name, "b");
}

}  // namespace
}  // namespace quernel::loop
