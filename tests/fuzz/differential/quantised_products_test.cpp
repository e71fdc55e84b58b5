// Products and convolutions with quantised constants against the interpreter: widths, blocks, zero points, numbers of
// rows, sums that end within a block or a word.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/build.h"
#include "on_host_targets.h"
#include "random_graph/random_graph.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel::testing {
namespace {

enum class Zeros { kNone, kElements, kFloats };

struct Product {
  int64_t rows, columns, steps, block;
  int bits;
  bool is_signed;
  Zeros zeros;
  DType scales;
};

Tensor elements(DType dtype, std::vector<int64_t> dims, int bits, Random& random) {
  Tensor tensor{dtype, std::move(dims), {}};
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, tensor.count())));
  const int64_t half = int64_t{1} << (bits - 1), low = is_signed_integer(dtype) ? -half : 0;
  for (int64_t i = 0; i < tensor.count(); ++i)
    store_i64(dtype, bytes.data(), i, random.between(low, low + 2 * half - 1));
  tensor.bytes = Bytes::own(std::move(bytes));
  return tensor;
}

Tensor floats(DType dtype, std::vector<int64_t> dims, double scale, Random& random) {
  Tensor tensor{dtype, std::move(dims), {}};
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, tensor.count())));
  for (int64_t i = 0; i < tensor.count(); ++i)
    store_f64(dtype, bytes.data(), i, static_cast<double>(random.between(1, 1000)) / 1000 * scale);
  tensor.bytes = Bytes::own(std::move(bytes));
  return tensor;
}

Graph graph_of(const Product& p, Random& random) {
  Graph graph;
  GraphBuilder build(graph);
  const ValueId x = graph.add_input("x", {DType::kF32, {p.rows, p.steps}});
  const DType dtype =
      p.bits == 4 ? (p.is_signed ? DType::kI4 : DType::kU4) : (p.is_signed ? DType::kI8 : DType::kU8);
  const int64_t blocks = (p.steps + p.block - 1) / p.block;
  const ValueId scales = build.constant(floats(p.scales, {p.columns, blocks}, 0.1, random));
  ValueId zeros = kNoValue;
  if (p.zeros == Zeros::kElements)
    zeros = build.constant(elements(dtype, {p.columns, blocks}, p.bits, random));
  if (p.zeros == Zeros::kFloats)
    zeros = build.constant(floats(DType::kF32, {p.columns, blocks}, 1 << p.bits, random));
  const ValueId weights = build.constant(elements(dtype, {p.columns, p.steps}, p.bits, random));
  Contraction c;
  c.axes = {{"m", p.rows, false}, {"n", p.columns, false}, {"k", p.steps, true}};
  c.a = {IndexExpr::axis(0), IndexExpr::axis(2)};
  c.b = {IndexExpr::axis(1), IndexExpr::axis(2)};
  c.out = {IndexExpr::axis(0), IndexExpr::axis(1)};
  graph.outputs.push_back(
      {"y", build.contract(x, build.dequantize(weights, scales, zeros, {1, p.block}), c)});
  return graph;
}

enum class Rows { kFloats, kBytes, kBytesOfWholeRows, kDigits };

void expect_close(const Product& p, const std::string& target, Rows kind = Rows::kFloats) {
  Random random(static_cast<uint64_t>(p.rows * 1000 + p.columns * 100 + p.steps + p.block + p.bits));
  Graph graph = graph_of(p, random);
  if (kind == Rows::kBytes || kind == Rows::kBytesOfWholeRows) {
    Expected<Graph> rounded =
        schedule::quantize_activations(graph, *find_target(target), kind == Rows::kBytesOfWholeRows);
    ASSERT_TRUE(rounded) << to_string(rounded.errors());
    graph = std::move(*rounded);
  }
  const std::vector<Tensor> inputs = random_inputs(graph, 7);
  Expected<std::vector<Tensor>> want = interpret(graph, inputs);
  if (kind == Rows::kDigits) {
    graph = *schedule::split_activations(graph, *find_target(target), /*least_weights=*/1);
    const bool is_split = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                      [](const Node& node) { return node.op == OpKind::k_dequantize_rows; });
    // One step is no sum.
    EXPECT_EQ(is_split, p.steps > 1 && p.rows <= schedule::most_rows_of_digits(*find_target(target), p.bits))
        << target;
  }
  ASSERT_TRUE(want) << to_string(want.errors());
  // Of the sums of magnitudes: at most 2 * 2^bits * 0.1 a step.
  const double most = 0.2 * static_cast<double>(p.steps << p.bits);
  expect_on_target(graph, inputs, *want, target, 0, most * 1e-6,
                   std::to_string(p.rows) + "x" + std::to_string(p.columns) + "x" + std::to_string(p.steps) +
                       ", " + std::to_string(p.bits) + " bits in blocks of " + std::to_string(p.block));
}

TEST(QuantisedProducts, widths_blocks_and_zero_points) {
  for (const std::string& target : host_targets()) {
    bool is_signed = false;  // in turn: each width and block has both, each kind of zero points, too
    for (int bits : {2, 4, 8})
      for (int64_t block : {16, 32, 256})
        for (Zeros zeros : {Zeros::kNone, Zeros::kElements, Zeros::kFloats})
          expect_close({2, 19, 100, block, bits, is_signed = !is_signed, zeros, DType::kF32}, target);
  }
}

TEST(QuantisedProducts, rows_and_columns) {
  for (const std::string& target : host_targets())
    for (int64_t rows : {1, 3, 4, 5, 17, 64})
      for (int64_t columns : {1, 15, 64, 200})
        expect_close({rows, columns, 64, 32, 4, false, Zeros::kElements, DType::kF16}, target);
}

TEST(QuantisedProducts, sums_that_end_anywhere) {
  for (const std::string& target : host_targets())
    for (int64_t steps : {1, 7, 8, 31, 33, 95, 258})
      for (int64_t rows : {1, 9})
        expect_close({rows, 40, steps, 32, 4, true, Zeros::kNone, DType::kBF16}, target);
}

void expect_bytes_of_all_formats(Rows kind) {
  const Zeros kZeros[] = {Zeros::kNone, Zeros::kElements, Zeros::kFloats};
  for (const std::string& target : host_targets()) {
    size_t turn = 0;
    for (int bits : {2, 4, 8}) {
      for (int64_t block : {16, 32, 256})
        expect_close({2, 19, 100, block, bits, block == 32, kZeros[turn++ % 3], DType::kF32}, target, kind);
      ++turn;  // each block has each kind of zero points
    }
  }
}

TEST(QuantisedProducts, rows_of_bytes) { expect_bytes_of_all_formats(Rows::kBytes); }

TEST(QuantisedProducts, rows_of_bytes_with_one_scale) {
  expect_bytes_of_all_formats(Rows::kBytesOfWholeRows);
  for (const std::string& target : host_targets())
    for (auto [rows, steps] : {std::pair<int64_t, int64_t>{1, 33}, {9, 95}, {17, 64}, {64, 258}})
      expect_close({rows, 40, steps, 32, 4, rows == 9, Zeros::kNone, DType::kF16}, target,
                   Rows::kBytesOfWholeRows);
}

TEST(QuantisedProducts, many_rows_of_bytes) {
  for (const std::string& target : host_targets())
    for (int64_t rows : {1, 17, 64})
      for (int64_t columns : {15, 200})
        expect_close({rows, columns, 64, 32, 4, false, Zeros::kElements, DType::kF16}, target, Rows::kBytes);
}

TEST(QuantisedProducts, rows_of_bytes_that_end_anywhere) {
  for (const std::string& target : host_targets())
    for (int64_t steps : {1, 7, 33, 95, 258})
      for (int64_t rows : {1, 9})
        expect_close({rows, 40, steps, 32, 4, true, Zeros::kNone, DType::kBF16}, target, Rows::kBytes);
}

// A square window over a padded image of [y, x, groups, channels].
struct Window {
  int64_t groups, channels, columns, side, stride;
  int64_t block;  // of channels; 0: a scale per column
  int bits;
  Zeros zeros;
};

Graph graph_of(const Window& p, Random& random) {
  constexpr int64_t kImage = 9;
  Graph graph;
  GraphBuilder build(graph);
  ValueId x = graph.add_input("x", {DType::kF32, {kImage, kImage, p.groups, p.channels}});
  x = build.pad(x, {1, 1, 0, 0}, {1, 1, 0, 0});
  const DType dtype = p.bits == 4 ? DType::kU4 : DType::kI8;
  const int64_t block = p.block == 0 ? p.channels : p.block, side = p.block == 0 ? p.side : 1;
  const std::vector<int64_t> scales{p.groups, p.columns, (p.channels + block - 1) / block, p.side / side,
                                    p.side / side};
  ValueId zeros = kNoValue;
  if (p.zeros == Zeros::kElements) zeros = build.constant(elements(dtype, scales, p.bits, random));
  if (p.zeros == Zeros::kFloats) zeros = build.constant(floats(DType::kF32, scales, 1 << p.bits, random));
  const ValueId weights =
      build.constant(elements(dtype, {p.groups, p.columns, p.channels, p.side, p.side}, p.bits, random));
  Contraction c;
  const Dim positions = (kImage + 2 - p.side) / p.stride + 1;
  c.axes = {{"y", positions, false}, {"x", positions, false}, {"g", p.groups, false}, {"o", p.columns, false},
            {"i", p.side, true},     {"j", p.side, true},     {"c", p.channels, true}};
  auto axis = [](int i) { return IndexExpr::axis(i); };
  c.a = {axis(0) * p.stride + axis(4), axis(1) * p.stride + axis(5), axis(2), axis(6)};
  c.b = {axis(2), axis(3), axis(6), axis(4), axis(5)};
  c.out = {axis(0), axis(1), axis(2), axis(3)};
  const ValueId scale = build.constant(floats(DType::kF32, scales, 0.1, random));
  graph.outputs.push_back(
      {"y", build.contract(x, build.dequantize(weights, scale, zeros, {1, 1, block, side, side}), c)});
  return graph;
}

TEST(QuantisedProducts, windows) {
  const Zeros kZeros[] = {Zeros::kNone, Zeros::kElements, Zeros::kFloats};
  for (const std::string& target : host_targets()) {
    size_t turn = 0;
    for (int64_t groups : {1, 3})
      for (int64_t block : {0, 16})
        for (int bits : {2, 4, 8}) {
          const int64_t channels = block + static_cast<int64_t>(turn % 2) * 8 + 3;
          const Window p{groups, channels,        19, 3, 1 + static_cast<int64_t>(turn % 2), block,
                         bits,   kZeros[turn % 3]};
          Random random(++turn);
          const Graph graph = graph_of(p, random);
          const std::vector<Tensor> inputs = random_inputs(graph, 7);
          const Expected<std::vector<Tensor>> want = interpret(graph, inputs);
          ASSERT_TRUE(want) << to_string(want.errors());
          const double most = 0.2 * static_cast<double>((9 * channels) << bits);  // sums of magnitudes
          expect_on_target(graph, inputs, *want, target, 0, most * 1e-6,
                           std::to_string(groups) + " groups, " + std::to_string(bits) +
                               " bits in blocks of " + std::to_string(block));
        }
  }
}

// Digits of bytes give what floats give.
TEST(QuantisedProducts, rows_of_digits) {
  const Zeros kZeros[] = {Zeros::kNone, Zeros::kElements, Zeros::kFloats};
  for (const std::string& target : host_targets()) {
    size_t turn = 0;
    for (int bits : {2, 4, 8}) {
      for (int64_t block : {16, 32, 256})
        expect_close({static_cast<int64_t>(turn % 4 + 1), 19, 100, block, bits, block == 32, kZeros[turn % 3],
                      DType::kF32},
                     target, Rows::kDigits),
            ++turn;
      ++turn;
    }
    for (int64_t steps : {1, 7, 33, 258})
      expect_close({1, 140, steps, 32, 4, true, Zeros::kNone, DType::kBF16}, target, Rows::kDigits);
  }
}

// The error of a result, as a share of the sums of its terms' magnitudes: the root of the mean square.
double error_of(const Tensor& got, const std::vector<double>& want, const std::vector<double>& magnitudes) {
  double sum = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double error = (element_as_f64(got, static_cast<int64_t>(i)) - want[i]) / magnitudes[i];
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(want.size()));
}

// Of rows that are ordinary, positive, spread over six decades, and have a few elements a thousand times as large.
TEST(QuantisedProducts, digits_are_as_exact_as_floats) {
  if (!schedule::multiplies_bytes(*find_target("native"), 4))
    GTEST_SKIP() << "this machine has no int8 dot products";
  constexpr int64_t kColumns = 512;
  CompileOptions digits, floats;
  digits.targets = floats.targets = {"native"};
  floats.disabled_passes = {"split-activations"};
  for (int64_t block : {32, 512})
    for (const char* kind : {"ordinary", "positive", "spread", "peaks"}) {
      Random random(static_cast<uint64_t>(block));
      Graph graph = graph_of({1, kColumns, 512, block, 4, false, Zeros::kNone, DType::kF32}, random);
      std::vector<float> row(512);
      for (float& x : row) {
        double value = static_cast<double>(random.between(-1'000'000, 1'000'000)) / 1'000'000;
        if (kind == std::string("positive")) value = std::abs(value);
        if (kind == std::string("spread"))
          value *= std::pow(10.0, -static_cast<double>(random.between(0, 6)));
        if (kind == std::string("peaks") && random.chance(1)) value *= 1000;
        x = static_cast<float>(value);
      }
      const std::vector<Tensor> inputs{f32_tensor({1, 512}, row)};
      Graph of_weights = graph;
      of_weights.outputs = {{"w", graph.nodes.back().inputs[1]}};
      const Tensor weights = (*interpret(of_weights, inputs))[0];
      std::vector<double> want(kColumns), magnitudes(kColumns);
      for (size_t n = 0; n < kColumns; ++n)
        for (size_t k = 0; k < row.size(); ++k) {
          const double term =
              double{row[k]} * element_as_f64(weights, static_cast<int64_t>(n * row.size() + k));
          want[n] += term, magnitudes[n] += std::abs(term);
        }
      const Tensor by_digits = (*run_compiled(graph, inputs, digits, 1))[0],
                   by_floats = (*run_compiled(graph, inputs, floats, 1))[0];
      const double of_digits = error_of(by_digits, want, magnitudes),
                   of_floats = error_of(by_floats, want, magnitudes);
      // Of peaks, 1.6 and 3.4 times: small elements of their block keep 24 bits of the peak.
      EXPECT_LT(of_digits, (kind == std::string("peaks") ? 5 : 2) * of_floats)
          << kind << ", blocks of " << block;
      EXPECT_LT(of_digits, 1e-6) << kind << ", blocks of " << block;
      RecordProperty(std::string(kind) + std::to_string(block),
                     std::to_string(of_digits * 1e9) + " and " + std::to_string(of_floats * 1e9) + " e-9");
    }
}

// What is not finite does not become finite.
TEST(QuantisedProducts, digits_of_infinities_and_nans) {
  for (const std::string& target : host_targets())
    for (float odd : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      Random random(1);
      const Graph graph = graph_of({1, 1024, 64, 32, 4, false, Zeros::kNone, DType::kF32}, random);
      std::vector<float> row(64, 1);
      row[40] = odd;
      CompileOptions options;
      options.targets = {target};
      Expected<std::vector<Tensor>> got = run_compiled(graph, {f32_tensor({1, 64}, row)}, options, 1);
      ASSERT_TRUE(got) << to_string(got.errors());
      for (int64_t i = 0; i < 1024; ++i) EXPECT_FALSE(std::isfinite(element_as_f64((*got)[0], i))) << target;
    }
}

// Rows of the block's largest value have the largest sums, in the order in which integers could overflow.
TEST(QuantisedProducts, the_largest_sums_of_bytes) {
  for (const std::string& target : host_targets()) {
    Random random(1);
    Graph graph = graph_of({1, 16, 4096, 4096, 8, false, Zeros::kNone, DType::kF32}, random);
    Graph rounded = *schedule::quantize_activations(graph, *find_target(target));
    const std::vector<Tensor> inputs{f32_tensor({1, 4096}, std::vector<float>(4096, -1))};
    Expected<std::vector<Tensor>> want = interpret(rounded, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    expect_on_target(rounded, inputs, *want, target, 1e-5, 0, "rows of -1");
  }
}

}  // namespace
}  // namespace quernel::testing
