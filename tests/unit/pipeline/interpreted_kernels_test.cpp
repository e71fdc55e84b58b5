// The kernels of targets that tests cannot run here, after all loop passes, through the interpreter of the loop IR:
// results equal the graph's, in the memory that the schedule gives them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "graph/interpret.h"
#include "graph/text.h"
#include "loop/interpret.h"
#include "loop/print.h"
#include "pipeline/lower_variant.h"
#include "schedule/storage.h"

namespace quernel {
namespace {

using schedule::BufferKind;

// Of i8.
std::vector<Tensor> random_inputs(const Graph& graph, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs) {
    Tensor& tensor = inputs.emplace_back();
    tensor.dtype = graph.dtype(v);
    for (const Dim& d : graph.shape(v)) tensor.dims.push_back(d.value());
    std::vector<int8_t> elements(static_cast<size_t>(tensor.count()));
    for (int8_t& element : elements) element = static_cast<int8_t>(random());
    tensor = make_tensor(tensor.dtype, tensor.dims, elements);
  }
  return inputs;
}

// The memory of a schedule without bodies, states or several regions.
class Memory {
 public:
  Memory(const schedule::Schedule& schedule, const std::vector<Tensor>& inputs)
      : s_(schedule), workspace_(static_cast<size_t>(schedule.regions[0].bytes.value()), 0xA5) {
    for (size_t b = 0; b < s_.buffers.size(); ++b) {
      const schedule::Buffer& buffer = s_.buffers[b];
      std::vector<uint8_t>& own = own_[static_cast<int>(b)];
      auto take = [&](const Tensor& tensor) {
        const auto* begin = reinterpret_cast<const uint8_t*>(tensor.bytes.data());
        own.assign(begin, begin + tensor.bytes.size());
      };
      if (buffer.packed)
        buffer.packed->pack([&](std::span<const std::byte> bytes) {
          const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
          own.insert(own.end(), begin, begin + bytes.size());
        });
      else if (buffer.kind == BufferKind::kConstant)
        take(buffer.data);
      if (buffer.kind == BufferKind::kInput) take(inputs[static_cast<size_t>(buffer.slot)]);
      if (buffer.kind == BufferKind::kOutput) own.assign(static_cast<size_t>(buffer.bytes.value()), 0xA5);
    }
  }

  std::span<uint8_t> at(const schedule::Binding& binding) {
    const int root = schedule::root_buffer(s_, binding.buffer);
    const schedule::Buffer& buffer = s_.buffers[static_cast<size_t>(root)];
    const auto offset = static_cast<size_t>(binding.offset.value()),
               bytes = static_cast<size_t>(binding.bytes.value());
    if (buffer.kind == BufferKind::kWorkspace)
      return std::span(workspace_).subspan(static_cast<size_t>(buffer.offset.value()) + offset, bytes);
    return std::span(own_.at(root)).subspan(offset, bytes);
  }

  const std::vector<uint8_t>& output(size_t slot) const {
    for (const auto& [b, bytes] : own_) {
      const schedule::Buffer& buffer = s_.buffers[static_cast<size_t>(b)];
      if (buffer.kind == BufferKind::kOutput && buffer.slot == static_cast<int>(slot)) return bytes;
    }
    ADD_FAILURE() << "no buffer of output " << slot;
    return workspace_;
  }

 private:
  const schedule::Schedule& s_;
  std::vector<uint8_t> workspace_;
  std::map<int, std::vector<uint8_t>> own_;
};

// Returns the text of all kernels.
std::string expect_equal(const std::string& text, const Target& target) {
  Expected<Graph> graph = parse_graph(text, "graph");
  if (!graph) {
    ADD_FAILURE() << to_string(graph.errors());
    return {};
  }
  const std::vector<Tensor> inputs = random_inputs(*graph, 1);
  Expected<std::vector<Tensor>> expected = interpret(*graph, inputs);
  Expected<Lowered> lowered = lower_variant({*graph}, target, {}, nullptr);
  if (!expected || !lowered) {
    ADD_FAILURE() << to_string(expected ? lowered.errors() : expected.errors());
    return {};
  }
  std::string kernels;
  for (const loop::Kernel& kernel : lowered->own.kernels) kernels += to_string(kernel);
  const bundle::CompiledEntry& entry = lowered->variant.entries[0];
  Memory memory(entry.schedule, inputs);
  for (size_t i = 0; i < entry.schedule.items.size(); ++i) {
    const bundle::Dispatch& dispatch = entry.dispatches[i];
    std::vector<std::span<uint8_t>> bindings;
    for (const schedule::Binding& binding : entry.schedule.items[i].bindings)
      bindings.push_back(memory.at(binding));
    std::vector<int64_t> symbols;
    for (const Dim& symbol : dispatch.symbols) symbols.push_back(symbol.value());
    Status status =
        loop::interpret(lowered->own.kernels[static_cast<size_t>(dispatch.kernel)], bindings, symbols);
    EXPECT_TRUE(status) << to_string(status.errors()) << kernels;
  }
  for (size_t o = 0; o < expected->size(); ++o) {
    const Bytes& bytes = (*expected)[o].bytes;
    const std::vector<uint8_t>& found = memory.output(o);
    const auto* begin = reinterpret_cast<const uint8_t*>(bytes.data());
    EXPECT_EQ(std::vector<uint8_t>(begin, begin + bytes.size()),
              std::vector<uint8_t>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(bytes.size())))
        << target.name << "\n"
        << kernels;
  }
  return kernels;
}

std::string expect_equal(const std::string& text, const std::string& target_name) {
  return expect_equal(text, *find_target(target_name));
}

class InterpretedKernels : public testing::TestWithParam<const char*> {};

std::string list(int count, int first, int step) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(first + i * step);
  return text;
}

// Integers of a layer: sums, a bias, and requantization by channel to bytes. `more`: what follows %byte, the result.
std::string layer(int rows, int steps, int columns, const std::string& more) {
  auto n = [](int number) { return std::to_string(number); };
  const std::string result = "[" + n(rows) + "," + n(columns) + "]", one = "[1," + n(columns) + "]";
  std::string weights, counts;
  for (int i = 0; i < columns * steps; ++i) weights += (i ? ", " : "") + n((i * 37 + 11) % 255 - 127);
  for (int i = 0; i < columns; ++i) counts += (i ? ", " : "") + n(1 + i % 7);
  std::string halves;
  for (int i = 0; i < columns; ++i) halves += (i ? ", " : "") + n(-5 * (1 << (i % 7)));
  return "graph @g(%x: i8[" + n(rows) + "," + n(steps) + "]) {\n  %w = constant i8[" + n(columns) + "," +
         n(steps) + "] {" + weights + "}\n  %bias = constant i32" + one + " {" + list(columns, -90, 17) +
         "}\n  %scale = constant i64" + one + " {" + list(columns, 1100000000, 7654321) +
         "}\n  %half = constant i32" + one + " {" + halves + "}\n  %count = constant i32" + one + " {" +
         counts + "}\n  %sum = contract %x, %w axes(m: " + n(rows) + ", o: " + n(columns) +
         " | c: " + n(steps) + ") a[m, c] b[o, c] out[m, o] acc i32 : i32" + result +
         "\n  %b = expand %bias : i32" + result + "\n  %biased = add %sum, %b : i32" + result +
         "\n  %wide = cast %biased : i64" + result + "\n  %s = expand %scale : i64" + result +
         "\n  %product = mul %wide, %s : i64" + result +
         "\n  %word = constant i64[1,1] {32}\n  %words = expand %word : i64" + result +
         "\n  %high = shr %product, %words : i64" + result + "\n  %narrow = cast %high : i32" + result +
         "\n  %h = expand %half : i32" + result + "\n  %rounded = add %narrow, %h : i32" + result +
         "\n  %c = expand %count : i32" + result + "\n  %shifted = shr %rounded, %c : i32" + result +
         "\n  %least = constant i32[1,1] {-128}\n  %low = expand %least : i32" + result +
         "\n  %clamped = max %shifted, %low : i32" + result +
         "\n  %most = constant i32[1,1] {127}\n  %top = expand %most : i32" + result +
         "\n  %least_of = min %clamped, %top : i32" + result + "\n  %byte = cast %least_of : i8" + result +
         "\n" + more + "}\n";
}

TEST_P(InterpretedKernels, requantized_layers_of_odd_sizes) {
  for (auto [rows, steps, columns] : {std::array{4, 8, 4}, {5, 9, 6}, {7, 3, 5}, {1, 32, 10}, {9, 17, 3}})
    expect_equal(layer(rows, steps, columns, "  return y = %byte\n"), GetParam());
}

// The bias is a constant of the columns, and here also one of the rows.
TEST_P(InterpretedKernels, constants_of_columns_that_rows_read_too) {
  expect_equal(
      layer(4, 8, 4,
            "  %rows = permute %bias {1, 0} : i32[4,1]\n  %r = expand %rows : i32[4,4]\n"
            "  %2 = cast %byte : i32[4,4]\n  %3 = add %2, %r : i32[4,4]\n  return y = %byte, z = %3\n"),
      GetParam());
  expect_equal(layer(4, 8, 4,
                     "  %turned = permute %b {1, 0} : i32[4,4]\n  %2 = cast %byte : i32[4,4]\n"
                     "  %3 = add %2, %turned : i32[4,4]\n  return y = %byte, z = %3\n"),
               GetParam());
}

TEST_P(InterpretedKernels, layers_behind_one_another) {
  expect_equal(
      layer(
          6, 8, 8,
          "  %w2 = constant i8[4,8] {" + list(32, -60, 4) +
              "}\n  %sum2 = contract %byte, %w2 axes(m: 6, o: 4 | c: 8) a[m, c] b[o, c] out[m, o] acc i32 : "
              "i32[6,4]\n  %w3 = constant i8[6,8] {" +
              list(48, -90, 3) +
              "}\n  %sum3 = contract %byte, %w3 axes(m: 6, o: 6 | c: 8) a[m, c] b[o, c] out[m, o] acc i32 : "
              "i32[6,6]\n  return y = %sum2, z = %sum3\n"),
      GetParam());
}

// Windows of 3x3 over each channel of an image, `step` apart.
std::string depthwise(int lines, int columns, int channels, int step) {
  auto n = [](int number) { return std::to_string(number); };
  const std::string by = step == 1 ? "" : n(step) + "*";
  std::string weights;
  for (int i = 0; i < channels * 9; ++i) weights += (i ? ", " : "") + n((i * 53 + 7) % 255 - 127);
  const std::string image = n((lines - 1) * step + 3) + "," + n((columns - 1) * step + 3) + "," + n(channels);
  const std::string result = n(lines) + "," + n(columns) + "," + n(channels);
  return "graph @g(%x: i8[" + image + "]) {\n  %w = constant i8[" + n(channels) + ",3,3] {" + weights +
         "}\n  %bias = constant i32[1,1," + n(channels) + "] {" + list(channels, -90, 17) +
         "}\n  %sum = contract %x, %w axes(y: " + n(lines) + ", x: " + n(columns) + ", c: " + n(channels) +
         " | ky: 3, kx: 3) a[" + by + "y + ky, " + by +
         "x + kx, c] b[c, ky, kx] out[y, x, c] acc i32 : i32[" + result + "]\n  %b = expand %bias : i32[" +
         result + "]\n  %y = add %sum, %b : i32[" + result + "]\n  return y = %y\n}\n";
}

TEST_P(InterpretedKernels, windows_over_channels) {
  for (int step : {1, 2})
    for (auto [lines, columns, channels] :
         {std::array{4, 6, 8}, {3, 5, 3}, {2, 12, 16}, {3, 7, 5}, {1, 1, 4}})
      expect_equal(depthwise(lines, columns, channels, step), GetParam());
}

// Borders of a padded image, which cats fill, differ in sizes only.
TEST_P(InterpretedKernels, images_in_borders) {
  auto framed = [](const std::string& name, const std::string& of, int n) {
    auto d = [](int x, int y) { return "[" + std::to_string(x) + "," + std::to_string(y) + "]"; };
    const std::string low = "l" + name, side = "s" + name;
    return "  %" + low + " = constant i8[1,1] {-7}\n  %e" + low + " = expand %" + low + " : i8" + d(n, 3) +
           "\n  %" + side + " = cat %e" + low + ", %" + of + ", %e" + low + " {1} : i8" + d(n, n + 6) +
           "\n  %f" + low + " = expand %" + low + " : i8" + d(2, n + 6) + "\n  %" + name + " = cat %f" + low +
           ", %" + side + ", %f" + low + " {0} : i8" + d(n + 4, n + 6) + "\n";
  };
  const std::string text = "graph @g(%x: i8[6,6], %z: i8[9,9]) {\n" + framed("a", "x", 6) +
                           framed("b", "z", 9) + "  return p = %a, q = %b\n}\n";
  const std::string kernels = expect_equal(text, GetParam());
  // Masks of vectors differ in more than sizes.
  if (GetParam() != std::string("cortex-m55")) {
    EXPECT_NE(kernels.find("symbols("), std::string::npos) << "kernels share code:\n" << kernels;
  }
}

// Tiles of 48 columns do not divide 1024: the last one is a tail, and so is what is gathered for it.
TEST(InterpretedKernels, gathered_columns_end_with_the_operand) {
  const std::string kernels = expect_equal(
      "graph @g(%x: i8[64,64], %w: i8[64,1024]) {\n  %a = cast %x : f32[64,64]\n"
      "  %b = cast %w : f32[64,1024]\n"
      "  %y = contract %a, %b axes(m: 64, n: 1024 | k: 64) a[m, k] b[k, n] out[m, n] acc f32 : f32[64,1024]\n"
      "  return y = %y\n}\n",
      "x86-64-v4");
  EXPECT_NE(kernels.find("alloc %column"), std::string::npos) << "columns are gathered:\n" << kernels;
}

// Rows of bytes by a constant of `bits` bits in blocks of 32 steps, all of which scale by integers or powers of two, so that
// sums are exact.
std::string quantised_product(int rows, int columns, int steps, int bits, bool has_zeros, bool whole_rows) {
  auto n = [](int number) { return std::to_string(number); };
  auto numbers = [](int count, const std::function<std::string(int)>& number) {
    std::string text;
    for (int i = 0; i < count; ++i) text += (i ? ", " : "") + number(i);
    return " {" + text + "}\n";
  };
  constexpr int kBlock = 32;
  const int blocks = (steps + kBlock - 1) / kBlock, top = (1 << bits) - 1, filled = blocks * kBlock;
  const std::string dtype = bits == 4 ? "u4" : "u8", bytes = "[" + n(rows) + "," + n(filled) + "]",
                    groups = "[" + n(rows) + "," + n(blocks) + "]",
                    of_scales = whole_rows ? "[" + n(rows) + ",1]" : groups,
                    sums = whole_rows ? "i32" : "f32", weights = "[" + n(columns) + "," + n(steps) + "]",
                    scales = "[" + n(columns) + "," + n(blocks) + "]";
  std::string text = "graph @g(%x: i8[" + n(rows) + "," + n(steps) + "], %z: i8" + of_scales + ") {\n";
  text += "  %filled = pad %x [0:0, 0:" + n(filled - steps) + "] fill 0 : i8" + bytes + "\n";
  text += "  %q = neg %filled : i8" + bytes + "\n";
  text += "  %f = cast %q : " + sums + bytes + "\n";
  text += "  %r = reshape %f : " + sums + "[" + n(rows) + "," + n(blocks) + ",32]\n";
  text += "  %t = reduce_sum %r {2} acc " + sums + " : " + sums + groups + "\n  %b = cast %z : f32" +
          of_scales + "\n  %a = abs %b : f32" + of_scales + "\n  %two = constant f32" + of_scales +
          " {2 ...}\n";
  text += "  %s = min %a, %two : f32" + of_scales + "\n";
  if (!whole_rows) text += "  %sums = mul %t, %s : f32" + groups + "\n";
  text += std::string("  %rows = dequantize_rows %q, %s, ") + (whole_rows ? "%t" : "%sums") + " {32} : f32" +
          bytes + "\n";
  text += "  %p = constant " + dtype + weights +
          numbers(columns * steps, [&](int i) { return n((i * 37 + i / 7) & top); });
  text +=
      "  %u = constant f32" + scales + numbers(columns * blocks, [](int i) { return i % 2 ? "0.25" : "4"; });
  if (has_zeros)
    text += "  %o = constant " + dtype + scales +
            numbers(columns * blocks, [&](int i) { return n(i * 5 & top); });
  text +=
      std::string("  %w = dequantize %p, %u") + (has_zeros ? ", %o" : "") + " {1, 32} : f32" + weights + "\n";
  return text + "  %y = contract %rows, %w axes(m: " + n(rows) + ", n: " + n(columns) + " | k: " + n(steps) +
         ") a[m, k] b[n, k] out[m, n] acc f32 : f32[" + n(rows) + "," + n(columns) +
         "]\n  return y = %y\n}\n";
}

// Words in pairs of columns: one row, two and more, odd numbers of them, tails of columns, sums that end within a block.
TEST(InterpretedKernels, two_rows_by_two_columns) {
  bool has_zeros = false, whole_rows = false;
  for (auto [rows, columns, steps, bits] : {std::array{1, 40, 64, 4},
                                            {2, 8, 32, 4},
                                            {5, 10, 100, 4},
                                            {16, 24, 64, 4},
                                            {30, 300, 96, 4},
                                            {1, 12, 100, 2},
                                            {7, 16, 96, 2},
                                            {1, 9, 72, 8},
                                            {6, 20, 136, 8},
                                            {3, 4, 100, 8}}) {
    has_zeros = !has_zeros;
    if (has_zeros) whole_rows = !whole_rows;
    const std::string kernels =
        expect_equal(quantised_product(rows, columns, steps, bits, has_zeros, whole_rows), "cortex-a710");
    const bool pairs = rows > 1 && (bits < 8 || steps % 8 == 0);
    EXPECT_EQ(kernels.find("dot_2x2(") != std::string::npos, pairs)
        << rows << " rows of " << steps << " steps\n"
        << kernels;
  }
}

struct ProductCase {
  int rows, columns, steps;
};

// Small integers as floats, weights up to `most`, so that sums are exact in any order, or bytes; `rows` by `columns`, or a window of 3
// over an image.
std::string product_of(const ProductCase& c, bool is_window, const std::string& a_dtype,
                       const std::string& b_dtype, int most = 7) {
  const auto [rows, columns, steps] = c;
  const bool is_float = a_dtype.find('f') != std::string::npos;
  auto n = [](int number) { return std::to_string(number); };
  const int lines = is_window ? rows + 2 : rows, places = is_window ? 3 : 1;
  const std::string image = "[" + n(lines) + "," + n(steps) + "]",
                    result = "[" + n(rows) + "," + n(columns) + "]",
                    weights = "[" + n(columns) + "," + n(places) + "," + n(steps) + "]";
  const std::string sums = is_float ? "f32" : "i32", stored = is_float ? "i8" : b_dtype;
  std::string text = "graph @g(%x: " + (is_float ? "i8" : a_dtype) + image + ") {\n  %k = constant " +
                     stored + weights + " {";
  for (int i = 0; i < columns * places * steps; ++i) {
    const int small = (i * 37 + i / 7) % (2 * most + 1) - most,
              byte = i * 37 % 256 - (b_dtype == "i8" ? 128 : 0);
    text += (i ? ", " : "") + n(is_float ? small : byte);
  }
  text += "}\n";
  if (is_float) text += "  %w = cast %k : " + b_dtype + weights + "\n";
  text += "  %h = " + (is_float ? "cast %x : " + a_dtype : "add %x, %x : " + a_dtype) + image +
          "\n  %s = contract %h, " + (is_float ? "%w" : "%k") + " axes(m: " + n(rows) + ", n: " + n(columns) +
          " | i: " + n(places) + ", k: " + n(steps) + ") a[m + i, k] b[n, i, k] out[m, n] acc " + sums +
          (is_float ? " unrounded : " : " : ") + sums + result;
  return text + "\n  %y = neg %s : " + sums + result + "\n  return y = %y\n}\n";
}

size_t products_of_matrices(const std::string& kernels, int steps) {
  const std::string product = "multiply_matrices(64, 64, " + std::to_string(steps) + ") %sums";
  size_t count = 0;
  for (size_t at = 0; (at = kernels.find(product, at)) != std::string::npos; ++at) ++count;
  return count;
}

// Tiles of 64 by 64 sums, of which rows and columns need not exist.
TEST(InterpretedKernels, matrix_units) {
  for (auto [dtype, target] : {std::pair{"f16", "vulkan+coopmat"}, {"bf16", "vulkan+coopmat-bf16"}}) {
    for (const ProductCase& c :
         {ProductCase{64, 64, 16}, {16, 32, 48}, {65, 70, 32}, {128, 64, 32}, {130, 200, 80}})
      for (bool is_window : {false, true}) {
        const std::string kernels = expect_equal(product_of(c, is_window, dtype, dtype), target);
        EXPECT_GT(products_of_matrices(kernels, 16), 0U) << kernels;
      }
    // Few rows, few columns, and sums that end within a fetch.
    for (const ProductCase& c : {ProductCase{15, 64, 64}, {64, 31, 64}, {64, 64, 40}}) {
      const std::string kernels = expect_equal(product_of(c, false, dtype, dtype), target);
      EXPECT_EQ(products_of_matrices(kernels, 16), 0U) << kernels;
    }
    // Another dtype is another feature's.
    const std::string other = expect_equal(product_of({64, 64, 32}, false, dtype, dtype), "vulkan");
    EXPECT_EQ(other.find("multiply_matrices"), std::string::npos) << other;
  }
}

// Matrices of equal signs; bytes of a get the sign of b's. Zeros fill up sums that end within a fetch, if few are needed.
TEST(InterpretedKernels, matrix_units_of_bytes) {
  for (std::string a : {"i8", "u8"})
    for (std::string b : {"i8", "u8"}) {
      for (const ProductCase& c :
           {ProductCase{64, 64, 32}, {16, 32, 96}, {65, 70, 64}, {128, 64, 64}, {130, 200, 24}, {70, 33, 60}})
        for (bool is_window : {false, true}) {
          const std::string kernels = expect_equal(product_of(c, is_window, a, b), "vulkan+coopmat-int8");
          EXPECT_GT(products_of_matrices(kernels, 32), 0U) << a << " by " << b << kernels;
        }
      for (const ProductCase& c : {ProductCase{15, 64, 64}, {64, 31, 64}, {64, 64, 40}}) {
        const std::string kernels = expect_equal(product_of(c, false, a, b), "vulkan+coopmat-int8");
        EXPECT_EQ(products_of_matrices(kernels, 32), 0U) << a << " by " << b << kernels;
      }
    }
  const std::string other = expect_equal(product_of({64, 64, 32}, false, "i8", "i8"), "vulkan+coopmat");
  EXPECT_EQ(other.find("multiply_matrices"), std::string::npos) << other;
}

// Packed columns of which a lane has several together, sums that are unrolled, and rows in shared memory, block by block: one,
// two, several of them, and a last one that is not whole.
TEST(InterpretedKernels, invocations_of_a_gpu) {
  Target small = *find_target("vulkan"), large = small, halves = *find_target("vulkan+f16sums");
  large.local_memory = true;
  large.workgroup_memory = 48 << 10;
  Target large_halves = halves;
  large_halves.local_memory = true;
  large_halves.workgroup_memory = 48 << 10;
  for (const ProductCase& c : {ProductCase{1, 600, 64},
                               {3, 256, 20},
                               {13, 130, 16},
                               {70, 300, 48},
                               {64, 64, 32},
                               {33, 520, 90},
                               {16, 128, 7}})
    for (bool is_window : {false, true}) {
      const std::string floats = product_of(c, is_window, "f32", "f32");
      expect_equal(floats, small);
      const std::string shared = expect_equal(floats, large);
      if (c.rows >= 4 && c.steps >= 16) EXPECT_NE(shared.find("%shared_rows"), std::string::npos) << shared;
      // 16 products of f16 up to 128 are exact.
      const std::string text = product_of(c, is_window, "f16", "f16", 1);
      EXPECT_NE(expect_equal(text, halves).find("%partial_"), std::string::npos);
      EXPECT_NE(expect_equal(text, large_halves).find("f16["), std::string::npos);
    }
}

INSTANTIATE_TEST_SUITE_P(BareMetal, InterpretedKernels,
                         testing::Values("cortex-m0plus", "cortex-m4", "cortex-m55", "riscv32imc"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace quernel
