// Passes keep what kernels compute: random kernels run before and after, through the interpreter.
#include "loop/passes.h"

#include <gtest/gtest.h>

#include <cstring>

#include "loop/evaluate_scalar.h"
#include "loop/rewrite.h"
#include "random_kernel.h"
#include "run_kernel.h"

namespace quernel::loop {

Kernel parsed(const std::string& text) {
  Expected<Kernel> kernel = parse_kernel(text);
  if (kernel) return std::move(*kernel);
  ADD_FAILURE() << quernel::to_string(kernel.errors()) << text;
  Kernel empty;
  empty.body = block({});
  return empty;
}

Bytes seeded_buffers(const Kernel& kernel, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes;
  for (const Buffer& buffer : kernel.buffers) {
    std::vector<uint8_t> contents(static_cast<size_t>(byte_size(buffer->dtype, buffer->size)));
    auto size = static_cast<size_t>(element_size(buffer->dtype));
    for (size_t i = 0; i + size <= contents.size(); i += size) {
      auto value = static_cast<int64_t>(random() % 17) - (is_unsigned_integer(buffer->dtype) ? 0 : 4);
      uint64_t bits = evaluate_cast(DType::kI64, buffer->dtype, static_cast<uint64_t>(value));
      std::memcpy(contents.data() + i, &bits, size);
    }
    bytes.push_back(std::move(contents));
  }
  return bytes;
}

Bytes run(const Kernel& kernel, Bytes buffers, std::string* error, const std::vector<int64_t>& symbols) {
  std::vector<std::span<uint8_t>> bindings(buffers.begin(), buffers.end());
  Status status = interpret(kernel, bindings, symbols);
  error->clear();
  if (!status) *error = quernel::to_string(status.errors());
  return buffers;
}

namespace {

int count_loops(const Stmt& s, AxisKind axis) {
  int count = s->kind == StmtKind::kFor && s->axis == axis;
  for (const Stmt& child : s->body) count += count_loops(child, axis);
  return count;
}

struct PassCase {
  const char* name;
  std::vector<void (*)(Kernel&)> passes;
};

const PassCase kCases[] = {
    {"simplify", {simplify}},
    {"vectorize_loops", {vectorize_loops}},
    {"unroll_loops", {unroll_loops}},
    {"pipeline", {simplify, vectorize_loops, unroll_loops, simplify}},
};

class RandomKernels : public testing::TestWithParam<PassCase> {};

TEST_P(RandomKernels, keep_their_results) {
  int vectorized = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    Kernel kernel = random_kernel(seed);
    Status before = verify(kernel);
    ASSERT_TRUE(before) << "seed " << seed << "\n"
                        << quernel::to_string(before.errors()) << to_string(kernel);
    std::string error;
    Bytes inputs = seeded_buffers(kernel, seed);
    Bytes expected = run(kernel, inputs, &error);
    ASSERT_EQ(error, "") << "seed " << seed << "\n" << to_string(kernel);
    std::string original = to_string(kernel);
    int vector_loops = count_loops(kernel.body, AxisKind::kVector);
    for (auto pass : GetParam().passes) {
      pass(kernel);
      Status status = verify(kernel);
      ASSERT_TRUE(status) << "seed " << seed << "\n"
                          << quernel::to_string(status.errors()) << original << to_string(kernel);
    }
    Bytes actual = run(kernel, inputs, &error);
    ASSERT_EQ(error, "") << "seed " << seed << "\n" << original << to_string(kernel);
    ASSERT_EQ(actual, expected) << "seed " << seed << "\n" << original << to_string(kernel);
    if (vector_loops > 0 && to_string(kernel).find("ramp(") != std::string::npos) ++vectorized;
  }
  bool vectorizes = GetParam().passes.size() != 1 || GetParam().passes[0] == vectorize_loops;
  EXPECT_TRUE(!vectorizes || vectorized > 100) << vectorized;
}

INSTANTIATE_TEST_SUITE_P(Passes, RandomKernels, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Passes, leave_no_vector_or_unrolled_loops) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    Kernel kernel = random_kernel(seed);
    for (auto pass : {simplify, vectorize_loops, unroll_loops}) pass(kernel);
    EXPECT_EQ(count_loops(kernel.body, AxisKind::kVector), 0);
    EXPECT_EQ(count_loops(kernel.body, AxisKind::kUnrolled), 0);
  }
}

TEST(Passes, simplify_is_deterministic_and_idempotent) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    Kernel first = random_kernel(seed), second = random_kernel(seed);
    simplify(first);
    simplify(second);
    EXPECT_EQ(to_string(first), to_string(second));
    simplify(second);
    EXPECT_EQ(to_string(first), to_string(second)) << "seed " << seed;
  }
}

// x = x + x, repeated: 2^60 nodes as a tree, 60 as a graph.
TEST(Passes, take_linear_time_on_shared_expressions) {
  Kernel kernel;
  kernel.name = "shared";
  auto buffer = [](const char* name, DType dtype, int binding, Access access) {
    return std::make_shared<const BufferNode>(BufferNode{name, dtype, 64, Scope::kGlobal, binding, access});
  };
  Buffer x = buffer("x", DType::kF32, 0, Access::kRead), y = buffer("y", DType::kF32, 1, Access::kWrite);
  kernel.buffers = {x, y};
  Var i = make_var("i"), v = make_var("v"), u = make_var("u");
  Expr index = var_ref(v);
  Expr value = load(x, index);
  Expr position = var_ref(i) * var_ref(i);
  for (int n = 0; n < 60; ++n) {
    value = value + value;
    position = binary(BinaryOp::k_max, position * position, position);
  }
  value = value + cast(DType::kF32, position);
  Stmt body = if_then(binary(BinaryOp::k_lt, value, const_float(DType::kF32, 1)), store(y, index, value));
  body = for_loop(u, const_index(2), AxisKind::kUnrolled, body);
  kernel.body = block(
      {for_loop(i, const_index(4), AxisKind::kSerial, for_loop(v, const_index(8), AxisKind::kVector, body))});
  EXPECT_TRUE(verify(kernel));
  for (auto pass : {simplify, vectorize_loops, simplify, unroll_loops, simplify}) pass(kernel);
  EXPECT_TRUE(verify(kernel));
}

TEST(Passes, take_linear_time_on_long_sums) {
  Kernel kernel;
  kernel.name = "long";
  Buffer x = std::make_shared<const BufferNode>(
      BufferNode{"x", DType::kI64, 64, Scope::kGlobal, 0, Access::kReadWrite});
  kernel.buffers = {x};
  Expr sum = const_index(0);
  for (int n = 0; n < 5000; ++n) sum = sum + load(x, const_index(n % 64)) * const_index(n + 1);
  kernel.body = block({store(x, const_index(0), sum)});
  std::string error;
  Bytes inputs = seeded_buffers(kernel, 1);
  Bytes expected = run(kernel, inputs, &error);
  simplify(kernel);
  EXPECT_EQ(run(kernel, inputs, &error), expected);
}

}  // namespace
}  // namespace quernel::loop
