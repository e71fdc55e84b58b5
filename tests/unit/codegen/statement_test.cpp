// Statements and grids: nested loops with symbolic extents, scalar and vector conditions, lets, register and
// shared buffers, lane reductions, index division, workgroup ranges.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "host_targets.h"
#include "kernel_maker.h"
#include "run_image.h"

namespace quernel::test {
namespace {

using namespace loop;

void for_each_target(const Kernel& kernel,
                     const std::function<void(const std::string&, const MappedImage&)>& run) {
  for (const std::string& target : host_targets()) {
    codegen::Image image = compile_or_fail({kernel}, target);
    if (image.code.empty()) return;
    MappedImage mapped(image.code);
    run(target, mapped);
  }
}

// out[x, y, z] = 10000 x + 100 y + z over a grid with a symbolic axis: the last axis runs fastest.
TEST(Statement, grid_axes_decode) {
  KernelMaker m("grid");
  Expr ny = m.symbol("ny");
  Buffer out = m.output(DType::kI64, 1000);
  Var x = m.grid(const_index(3)), y = m.grid(ny), z = m.grid(const_index(4));
  Expr index = (var_ref(x) * ny + var_ref(y)) * const_index(4) + var_ref(z);
  m.kernel.body =
      store(out, index, var_ref(x) * const_index(10000) + var_ref(y) * const_index(100) + var_ref(z));
  for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
    for (int64_t n : {0, 1, 5}) {
      std::vector<int64_t> y_out(static_cast<size_t>(12 * n) + 1, -1), want = y_out;
      for (int64_t i = 0; i < 12 * n; ++i)
        want[static_cast<size_t>(i)] = i / (4 * n) * 10000 + i / 4 % n * 100 + i % 4;
      void* bindings[] = {y_out.data()};
      qnl_kernel_args args{bindings, &n, nullptr};
      auto total = static_cast<uint64_t>(12 * n);
      // In two ranges, the later one first.
      EXPECT_EQ(image.kernel(0)(&args, total / 3, total), QNL_KERNEL_OK);
      EXPECT_EQ(image.kernel(0)(&args, 0, total / 3), QNL_KERNEL_OK);
      EXPECT_EQ(y_out, want) << target << " " << n;
    }
  });
}

// Sums of products of bf16 in every lane: the upper ones are added first.
TEST(Statement, dots_of_halves) {
  constexpr int kWords = 48;
  for (int lanes : {1, 3, 4, 8, 16}) {
    Kernel kernel = elementwise("dots", {DType::kU32, DType::kU32, DType::kF32}, DType::kF32, kWords, lanes,
                                [](const std::vector<Expr>& in) { return dot(in[0], in[1], in[2]); });
    for_each_target(kernel, [&](const std::string& target, const MappedImage& image) {
      std::vector<uint32_t> x(kWords), y(kWords);
      std::vector<float> sums(kWords), got(kWords), want(kWords);
      for (uint32_t i = 0; i < kWords; ++i) {
        // Exponents near 0, all bits of the fractions, all signs.
        auto half = [](uint32_t seed) { return (seed * 2654435761U >> 16 & 0x83ff) | 0x3c00; };
        x[i] = half(4 * i) | half(4 * i + 1) << 16;
        y[i] = half(4 * i + 2) | half(4 * i + 3) << 16;
        sums[i] = want[i] = 1e-3F * static_cast<float>(i * i) - 1;
        for (int shift : {16, 0}) {
          auto value = [&](uint32_t word) { return std::bit_cast<float>((word >> shift & 0xffff) << 16); };
          want[i] = std::fma(value(x[i]), value(y[i]), want[i]);
        }
      }
      EXPECT_EQ(image.call(0, {x.data(), y.data(), sums.data(), got.data()}), QNL_KERNEL_OK);
      EXPECT_EQ(got, want) << target << " " << lanes << " lanes";
    });
  }
}

// Sums of two products in each half of a word, then of both halves.
TEST(Statement, dots_in_halves_of_words) {
  constexpr int kWords = 48;
  for (bool a_signed : {false, true})
    for (int lanes : {1, 3, 4, 8, 16}) {
      Kernel kernel = elementwise(
          "dots", {DType::kU32, DType::kI32, DType::kU32}, DType::kI32, kWords, lanes,
          [&](const std::vector<Expr>& in) {
            Expr sums = a_signed ? dot(in[1], in[0], in[2]) : dot(in[0], in[1], in[2]);
            Expr both = bitcast({DType::kI32, lanes}, sums), half = const_int(DType::kI32, 16, lanes);
            return binary(BinaryOp::k_shr, binary(BinaryOp::k_shl, both, half), half) +
                   binary(BinaryOp::k_shr, both, half);
          });
      for_each_target(kernel, [&](const std::string& target, const MappedImage& image) {
        std::vector<uint8_t> x(4 * kWords);  // elements of four bits
        std::vector<int8_t> y(4 * kWords);
        std::vector<uint32_t> sums(kWords);
        std::vector<int32_t> got(kWords), want(kWords);
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = i < 16 ? 15 : i * 37 % 16;
          y[i] = static_cast<int8_t>(i < 8 ? -128 : i < 16 ? 127 : i * 91 + 5);
        }
        for (size_t i = 0; i < kWords; ++i) {
          const auto lower = static_cast<int16_t>(i < 2 ? 0 : 97 * i - 2000),
                     upper = static_cast<int16_t>(i < 2 ? -30000 + 7 * 3840 : 1000 - 301 * i);
          sums[i] = uint32_t{static_cast<uint16_t>(lower)} | uint32_t{static_cast<uint16_t>(upper)} << 16;
          want[i] = lower + upper;
          for (size_t k = 4 * i; k < 4 * i + 4; ++k) want[i] += x[k] * y[k];
        }
        EXPECT_EQ(image.call(0, {x.data(), y.data(), sums.data(), got.data()}), QNL_KERNEL_OK);
        EXPECT_EQ(got, want) << target << " " << lanes << " lanes";
      });
    }
}

// Sums of products of bytes, of all signs, with extremes whose pairs do not fit 16 bits.
TEST(Statement, dots_of_bytes) {
  constexpr int kWords = 48;
  for (bool a_signed : {false, true})
    for (bool b_signed : {false, true})
      for (int lanes : {1, 3, 4, 8, 16}) {
        DType a = a_signed ? DType::kI32 : DType::kU32, b = b_signed ? DType::kI32 : DType::kU32;
        Kernel kernel = elementwise("dots", {a, b, DType::kI32}, DType::kI32, kWords, lanes,
                                    [](const std::vector<Expr>& in) { return dot(in[0], in[1], in[2]); });
        for_each_target(kernel, [&](const std::string& target, const MappedImage& image) {
          std::vector<uint8_t> x(4 * kWords), y(4 * kWords);
          std::vector<int32_t> sums(kWords), got(kWords), want(kWords);
          for (size_t i = 0; i < x.size(); ++i) {
            x[i] = static_cast<uint8_t>(i < 16 ? 128 : i < 32 ? 255 : i * 37);
            y[i] = static_cast<uint8_t>(i < 8 || (i >= 16 && i < 24) ? 128
                                        : i < 48                     ? 127 + i % 2
                                                                     : i * 91 + 5);
          }
          auto value = [](uint8_t byte, bool is_signed) { return is_signed ? int8_t(byte) : int{byte}; };
          for (size_t i = 0; i < kWords; ++i) {
            sums[i] = want[i] = static_cast<int32_t>(i) * 1000 - 20000;
            for (size_t k = 4 * i; k < 4 * i + 4; ++k)
              want[i] += value(x[k], a_signed) * value(y[k], b_signed);
          }
          EXPECT_EQ(image.call(0, {x.data(), y.data(), sums.data(), got.data()}), QNL_KERNEL_OK);
          EXPECT_EQ(got, want) << target << " " << lanes << " lanes " << a_signed << b_signed;
        });
      }
}

// Products of two rows by two columns of eight bytes, of all signs.
TEST(Statement, dots_of_two_rows_and_two_columns) {
  constexpr int kVectors = 12, kWords = 4 * kVectors;
  for (bool a_signed : {false, true})
    for (bool b_signed : {false, true}) {
      DType a = a_signed ? DType::kI32 : DType::kU32, b = b_signed ? DType::kI32 : DType::kU32;
      Kernel kernel = elementwise("dots", {a, b, DType::kI32}, DType::kI32, kWords, 4,
                                  [](const std::vector<Expr>& in) { return dot_2x2(in[0], in[1], in[2]); });
      for_each_target(kernel, [&](const std::string& target, const MappedImage& image) {
        std::vector<uint8_t> x(4 * kWords), y(4 * kWords);
        std::vector<int32_t> sums(kWords), got(kWords), want(kWords);
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = static_cast<uint8_t>(i < 16 ? 128 : i < 32 ? 255 : i * 37);
          y[i] = static_cast<uint8_t>(i < 16 ? 128 : i < 48 ? 127 + i % 2 : i * 91 + 5);
        }
        auto value = [](uint8_t byte, bool is_signed) { return is_signed ? int8_t(byte) : int{byte}; };
        for (size_t i = 0; i < kWords; ++i) {
          sums[i] = want[i] = static_cast<int32_t>(i) * 1000 - 20000;
          const size_t vector = i / 4 * 16, row = vector + i % 4 / 2 * 8, column = vector + i % 2 * 8;
          for (size_t k = 0; k < 8; ++k)
            want[i] += value(x[row + k], a_signed) * value(y[column + k], b_signed);
        }
        EXPECT_EQ(image.call(0, {x.data(), y.data(), sums.data(), got.data()}), QNL_KERNEL_OK);
        EXPECT_EQ(got, want) << target << " " << a_signed << b_signed;
      });
    }
}

// A matrix product with a register accumulator, a let and a reduction over a symbolic extent.
TEST(Statement, register_accumulators) {
  constexpr int kRows = 3, kColumns = 32;
  KernelMaker m("product");
  Expr depth = m.symbol("k");
  Buffer a = m.global(DType::kF32, 1000), b = m.global(DType::kF32, 10000),
         c = m.output(DType::kF32, kRows * kColumns);
  Buffer accumulators = m.local(DType::kF32, kRows * kColumns, Scope::kRegister);
  std::vector<Stmt> body = {alloc(accumulators)}, inner;
  Var k = m.var();
  for (int j = 0; j < kColumns; j += 16) {
    Var column = m.var({DType::kF32, 16});
    inner.push_back(
        let(column, load(b, ramp(var_ref(k) * const_index(kColumns) + const_index(j), 1, 16), 16)));
    for (int i = 0; i < kRows; ++i) {
      Expr place = ramp(const_index(i * kColumns + j), 1, 16);
      body.push_back(store(accumulators, place, const_float(DType::kF32, 0, 16)));
      Expr row = broadcast(load(a, const_index(i) * depth + var_ref(k)), 16);
      inner.push_back(
          store(accumulators, place, mul_acc(row, var_ref(column), load(accumulators, place, 16))));
    }
  }
  body.push_back(for_loop(k, depth, AxisKind::kReduction, block(inner)));
  for (int i = 0; i < kRows * kColumns; i += 16)
    body.push_back(
        store(c, ramp(const_index(i), 1, 16), load(accumulators, ramp(const_index(i), 1, 16), 16)));
  m.kernel.body = block(body);
  for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
    for (int64_t depth_value : {0, 1, 7}) {
      std::vector<float> x(100), y(1000), z(kRows * kColumns);
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) - 2;
      for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 7) - 3;
      image.call(0, {x.data(), y.data(), z.data()}, 1, {depth_value});
      for (int64_t i = 0; i < kRows; ++i)
        for (int64_t j = 0; j < kColumns; ++j) {
          float want = 0;
          for (int64_t q = 0; q < depth_value; ++q)
            want += x[static_cast<size_t>(i * depth_value + q)] * y[static_cast<size_t>(q * kColumns + j)];
          EXPECT_EQ(z[static_cast<size_t>(i * kColumns + j)], want) << target << " depth " << depth_value;
        }
    }
  });
}

// Shared memory: reverse 64 elements through it, with computed scalar and vector accesses.
TEST(Statement, shared_buffers_are_on_the_stack) {
  KernelMaker m("reverse");
  Buffer in = m.global(DType::kI16, 64), out = m.output(DType::kI16, 64);
  Buffer shared = m.local(DType::kI16, 64, Scope::kShared);
  Var i = m.var(), j = m.var();
  m.kernel.body = block({alloc(shared),
                         for_loop(i, const_index(64), AxisKind::kSerial,
                                  store(shared, const_index(63) - var_ref(i), load(in, var_ref(i)))),
                         barrier(),
                         for_loop(j, const_index(4), AxisKind::kSerial,
                                  store(out, ramp(var_ref(j) * const_index(16), 1, 16),
                                        load(shared, ramp(var_ref(j) * const_index(16), 1, 16), 16)))});
  for (const std::string& target : host_targets()) {
    codegen::Image image = compile_or_fail({m.kernel}, target);
    EXPECT_GE(image.stack_bytes.at(0), 128u);
    EXPECT_LE(image.stack_bytes.at(0), 4096u);
    MappedImage mapped(image.code);
    std::vector<int16_t> x(64), y(64);
    std::iota(x.begin(), x.end(), int16_t{0});
    mapped.call(0, {x.data(), y.data()});
    EXPECT_EQ(y, std::vector<int16_t>(x.rbegin(), x.rend())) << target;
  }
}

// Two large shared buffers: each has its own part of what the caller lends, and the stack has neither.
TEST(Statement, large_shared_buffers_are_in_scratch) {
  constexpr int64_t n = 4096;
  KernelMaker m("swap");
  Buffer in = m.output(DType::kF32, n), out = m.output(DType::kF32, n);
  Buffer first = m.local(DType::kF32, n, Scope::kShared),
         second = m.local(DType::kF32, n + 1, Scope::kShared);
  auto copy = [&](const Buffer& to, const Buffer& from) {
    Var i = m.var();
    Expr at = ramp(var_ref(i) * const_index(16), 1, 16);
    return for_loop(i, const_index(n / 16), AxisKind::kSerial, store(to, at, load(from, at, 16)));
  };
  m.kernel.body = block(
      {alloc(first), alloc(second), copy(first, in), copy(second, out), copy(out, first), copy(in, second)});
  for (const std::string& target : host_targets()) {
    codegen::Image image = compile_or_fail({m.kernel}, target);
    EXPECT_EQ(image.scratch_bytes.at(0), n * 4 + (n + 1) * 4 + 60u);
    EXPECT_LE(image.stack_bytes.at(0), 4096u);
    MappedImage mapped(image.code);
    std::vector<float> x(n), y(n);
    std::iota(x.begin(), x.end(), 0.0f);
    std::iota(y.begin(), y.end(), 5000.0f);
    std::vector<float> want_x = y, want_y = x;
    auto* scratch = static_cast<char*>(std::aligned_alloc(64, image.scratch_bytes[0]));
    mapped.call(0, {x.data(), y.data()}, 1, {}, scratch);
    std::free(scratch);
    EXPECT_EQ(x, want_x) << target;
    EXPECT_EQ(y, want_y) << target;
  }
}

TEST(Statement, scalar_if_else) {
  KernelMaker m("if");
  Buffer in = m.global(DType::kF32, 64), out = m.output(DType::kF32, 64);
  Var i = m.var();
  Expr v = load(in, var_ref(i));
  m.kernel.body =
      for_loop(i, const_index(64), AxisKind::kSerial,
               if_then(binary(BinaryOp::k_gt, v, const_float(DType::kF32, 0)), store(out, var_ref(i), v),
                       if_then(binary(BinaryOp::k_eq, v, const_float(DType::kF32, -3)),
                               store(out, var_ref(i), const_float(DType::kF32, 99)))));
  for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
    std::vector<float> x(64), y(64, 5);
    std::iota(x.begin(), x.end(), -10.0f);
    image.call(0, {x.data(), y.data()});
    for (size_t k = 0; k < 64; ++k) EXPECT_EQ(y[k], x[k] > 0 ? x[k] : x[k] == -3 ? 99 : 5) << target;
  });
}

// A vector condition is a mask for stores on both sides, nested ones included.
TEST(Statement, vector_if_else) {
  KernelMaker m("if");
  Buffer in = m.global(DType::kI32, 64), out = m.output(DType::kI32, 64);
  Var i = m.var();
  Expr at = ramp(var_ref(i) * const_index(16), 1, 16);
  Expr v = load(in, at, 16);
  auto c = [](int64_t value) { return const_int(DType::kI32, value, 16); };
  Stmt inner = if_then(binary(BinaryOp::k_lt, v, c(40)), store(out, at, v * c(2)), store(out, at, c(-1)));
  m.kernel.body = for_loop(i, const_index(4), AxisKind::kSerial,
                           if_then(binary(BinaryOp::k_gt, v, c(20)), inner,
                                   store(out, at, c(7), binary(BinaryOp::k_ne, v, c(3)))));
  for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
    std::vector<int32_t> x(64), y(64, 1000);
    std::iota(x.begin(), x.end(), 0);
    image.call(0, {x.data(), y.data()});
    for (int32_t k = 0; k < 64; ++k)
      EXPECT_EQ(y[static_cast<size_t>(k)], k > 20   ? (k < 40 ? 2 * k : -1)
                                           : k == 3 ? 1000
                                                    : 7)
          << target << " " << k;
  });
}

TEST(Statement, lane_reductions) {
  for (int lanes : {2, 3, 5, 8, 16, 31})
    for (BinaryOp op : {BinaryOp::k_add, BinaryOp::k_mul, BinaryOp::k_max, BinaryOp::k_min}) {
      KernelMaker m("reduce");
      Buffer in = m.global(DType::kI64, lanes), out = m.output(DType::kI64, 1);
      m.kernel.body =
          store(out, const_index(0), reduce_lanes(op, load(in, ramp(const_index(0), 1, lanes), lanes)));
      for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
        std::vector<int64_t> x;
        for (int k = 0; k < lanes; ++k) x.push_back((k * 7) % 11 - 5 ? (k * 7) % 11 - 5 : 3);
        int64_t want = x[0], got = 0;
        for (size_t k = 1; k < x.size(); ++k)
          want = op == BinaryOp::k_add   ? want + x[k]
                 : op == BinaryOp::k_mul ? want * x[k]
                 : op == BinaryOp::k_max ? std::max(want, x[k])
                                         : std::min(want, x[k]);
        image.call(0, {x.data(), &got});
        EXPECT_EQ(got, want) << target << " lanes " << lanes << " " << to_string(op);
      });
    }
}

TEST(Statement, interleaving) {
  for (DType dtype : {DType::kU8, DType::kF16, DType::kF32, DType::kF64})
    for (int lanes : {2, 4, 8, 16}) {
      KernelMaker m("interleave");
      Buffer in = m.global(dtype, 2 * lanes), out = m.output(dtype, 2 * lanes);
      Expr first = ramp(const_index(0), 1, lanes), second = ramp(const_index(lanes), 1, lanes);
      Expr a = load(in, first, lanes), b = load(in, second, lanes);
      m.kernel.body =
          block({store(out, first, interleave(false, a, b)), store(out, second, interleave(true, a, b))});
      for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
        size_t size = static_cast<size_t>(element_size(dtype));
        std::vector<uint8_t> x(2 * lanes * size), want(x.size()), got(x.size());
        std::iota(x.begin(), x.end(), uint8_t{1});
        for (int i = 0; i < 2 * lanes; ++i)
          std::copy_n(x.begin() + (i % 2 * lanes + i / 2) * static_cast<int>(size), size,
                      want.begin() + i * static_cast<int>(size));
        image.call(0, {x.data(), got.data()});
        EXPECT_EQ(got, want) << target << " lanes " << lanes << " " << to_string(dtype);
      });
    }
}

// Index arithmetic of reshapes and views: i / c, i % c and i / symbol, i % symbol, zero included.
TEST(Statement, index_division) {
  KernelMaker m("index");
  Expr n = m.symbol("n");
  Buffer out = m.output(DType::kI64, 400);
  Var i = m.var();
  Expr at = var_ref(i) * const_index(4);
  auto op = [&](BinaryOp which, const Expr& by) { return binary(which, var_ref(i), by); };
  m.kernel.body = for_loop(i, const_index(100), AxisKind::kSerial,
                           block({store(out, at, op(BinaryOp::k_fdiv, const_index(7))),
                                  store(out, at + const_index(1), op(BinaryOp::k_mod, const_index(7))),
                                  store(out, at + const_index(2), op(BinaryOp::k_fdiv, n)),
                                  store(out, at + const_index(3), op(BinaryOp::k_mod, n))}));
  for_each_target(m.kernel, [&](const std::string& target, const MappedImage& image) {
    for (int64_t by : {0, 1, 9}) {
      std::vector<int64_t> y(400);
      image.call(0, {y.data()}, 1, {by});
      for (int64_t k = 0; k < 100; ++k) {
        EXPECT_EQ(y[static_cast<size_t>(4 * k)], k / 7) << target;
        EXPECT_EQ(y[static_cast<size_t>(4 * k + 1)], k % 7) << target;
        EXPECT_EQ(y[static_cast<size_t>(4 * k + 2)], by ? k / by : 0) << target;
        EXPECT_EQ(y[static_cast<size_t>(4 * k + 3)], by ? k % by : 0) << target;
      }
    }
  });
}

}  // namespace
}  // namespace quernel::test
