// Constants that are packed when they are written.
#include "schedule/contraction/packed_operand.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "graph/text.h"
#include "pipeline/run_passes.h"
#include "schedule/contraction/pack_operand.h"

namespace quernel::schedule {
namespace {

std::vector<std::byte> written(const PackedConstant& constant, int* parts = nullptr) {
  std::vector<std::byte> bytes;
  constant.pack([&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
    if (parts) ++*parts;
  });
  return bytes;
}

Tensor random_tensor(std::vector<int64_t> dims, uint32_t seed) {
  std::mt19937 random(seed);
  Tensor shape{DType::kF32, dims, {}};
  std::vector<float> values(static_cast<size_t>(shape.count()));
  for (float& value : values) value = static_cast<float>(static_cast<int32_t>(random()));
  return f32_tensor(std::move(dims), values);
}

// The schedule of a row of k elements times a constant of k rows and n columns, or of n rows and k columns.
Schedule product(const Tensor& weights, bool transposed) {
  const std::string dims = std::to_string(weights.dims[0]) + "," + std::to_string(weights.dims[1]);
  const std::string k = std::to_string(weights.dims[transposed ? 1 : 0]);
  const std::string n = std::to_string(weights.dims[transposed ? 0 : 1]);
  Expected<Graph> graph = parse_graph("graph @g(%x: f32[1," + k + "]) {\n  %w = constant f32[" + dims +
                                      "] {1 ...}\n  %y = contract %x, %w axes(m: 1, n: " + n + " | k: " + k +
                                      ") a[m, k] b[" + (transposed ? "n, k" : "k, n") +
                                      "] out[m, n] acc f32 : f32[1," + n + "]\n  return y = %y\n}\n");
  if (!graph) ADD_FAILURE() << to_string(graph.errors());
  for (Node& node : graph->nodes)
    if (node.op == OpKind::k_constant) node.attributes.tensor = weights;
  Packings packings;
  Expected<Schedule> schedule = make_schedule(std::move(*graph), *find_target("x86-64-v3"), packings, {});
  if (!schedule) ADD_FAILURE() << to_string(schedule.errors());
  return std::move(*schedule);
}

const PackedConstant& packed_of(const Schedule& schedule) {
  return *schedule.buffers[static_cast<size_t>(schedule.groups[0].packed_buffers.at(0))].packed;
}

TEST(PackedOperand, is_written_in_parts_that_are_the_whole) {
  for (bool transposed : {false, true}) {
    const Tensor weights =
        transposed ? random_tensor({20003, 300}, 1) : random_tensor({300, 20003}, 1);  // 24 MB, and a tail
    const Schedule schedule = product(weights, transposed);
    const PackedConstant& constant = packed_of(schedule);
    int parts = 0;
    const std::vector<std::byte> bytes = written(constant, &parts);
    EXPECT_GT(parts, 1);
    EXPECT_EQ(static_cast<int64_t>(bytes.size()), constant.bytes);
    const Tensor whole = pack_operand(weights, schedule.groups[0].contraction);
    ASSERT_EQ(bytes.size(), whole.bytes.size());
    EXPECT_EQ(std::memcmp(bytes.data(), whole.bytes.data(), bytes.size()), 0);
  }
}

TEST(PackedOperand, is_the_same_where_source_and_order_are) {
  const Tensor weights = random_tensor({128, 200}, 1), copy = random_tensor({128, 200}, 1);
  Tensor other = random_tensor({128, 200}, 2);
  const Schedule schedule = product(weights, false), again = product(copy, false),
                 transposed = product(weights, true), different = product(other, false);
  const PackedConstant& constant = packed_of(schedule);
  EXPECT_TRUE(same_constant(constant, packed_of(again)));
  EXPECT_EQ(sampled_hash(constant), sampled_hash(packed_of(again)));
  EXPECT_FALSE(same_constant(constant, packed_of(transposed)));
  EXPECT_FALSE(same_constant(constant, packed_of(different)));
}

// Bytes of a by `columns` rows of bytes of b.
Schedule byte_product(int64_t columns, int64_t steps) {
  const std::string n = std::to_string(columns), k = std::to_string(steps);
  Expected<Graph> graph =
      parse_graph("graph @g(%x: u8[16," + k + "]) {\n  %w = constant i8[" + n + "," + k +
                  "] {-3 ...}\n  %y = contract %x, %w axes(m: 16, n: " + n + " | k: " + k +
                  ") a[m, k] b[n, k] out[m, n] acc i32 : i32[16," + n + "]\n  return y = %y\n}\n");
  if (!graph) ADD_FAILURE() << to_string(graph.errors());
  Packings packings;
  Expected<Schedule> schedule =
      make_schedule(std::move(*graph), *find_target("vulkan+coopmat-int8"), packings, {});
  if (!schedule) ADD_FAILURE() << to_string(schedule.errors());
  return std::move(*schedule);
}

TEST(PackedOperand, steps_of_matrices_of_bytes_lie_together) {
  constexpr int64_t kColumns = 70, kSteps = 40 * 3, kSide = 64, kDot = 32, kPanel = (1 + 4) * kSide * kDot;
  const Schedule schedule = byte_product(kColumns, kSteps);
  const ContractionPlan& plan = schedule.groups[0].contraction;
  EXPECT_TRUE(plan.matrices);
  EXPECT_EQ(plan.dot_shift, -128);
  const Buffer& packed = schedule.buffers[static_cast<size_t>(schedule.groups[0].packed_buffers.at(0))];
  const Bytes& bytes = packed.data.bytes;
  EXPECT_EQ(packed.data.dtype, DType::kI8);
  ASSERT_EQ(static_cast<int64_t>(bytes.size()), 2 * kPanel);
  auto at = [&](int64_t i) { return static_cast<int8_t>(bytes.data()[i]); };
  for (int64_t n = 0; n < 2 * kSide; ++n) {
    const int64_t panel = n / kSide * kPanel, column = n % kSide;
    uint32_t cancels = 0;
    for (int64_t i = 0; i < 4; ++i)
      cancels |= uint32_t{static_cast<uint8_t>(at(panel + i * kSide + column))} << (8 * i);
    EXPECT_EQ(static_cast<int32_t>(cancels), n < kColumns ? 128 * -3 * kSteps : 0);
    for (int64_t k = 0; k < 4 * kDot; ++k)
      EXPECT_EQ(at(panel + ((1 + k / kDot) * kSide + column) * kDot + k % kDot),
                n < kColumns && k < kSteps ? -3 : 0);
  }
}

// A kernel binds at most 120 MiB; with what fills up short sums, fewer columns fit.
TEST(PackedOperand, matrices_of_bytes_fit_a_binding) {
  EXPECT_TRUE(byte_product(1000000, 64).groups[0].contraction.matrices);
  const Schedule schedule = byte_product(1800000, 64);
  const ContractionPlan& plan = schedule.groups[0].contraction;
  EXPECT_FALSE(plan.matrices);
  EXPECT_EQ(plan.dot, 4);
  EXPECT_EQ(plan.dot_shift, 0);
}

TEST(PackedOperand, small_ones_are_packed_at_once) {
  const Tensor weights = random_tensor({16, 20}, 1);
  const Schedule schedule = product(weights, false);
  const Buffer& buffer = schedule.buffers[static_cast<size_t>(schedule.groups[0].packed_buffers.at(0))];
  EXPECT_FALSE(buffer.packed);
  const Tensor whole = pack_operand(weights, schedule.groups[0].contraction);
  EXPECT_TRUE(same_bytes(buffer.data.bytes, whole.bytes));
}

TEST(PackedOperand, tensors_that_differ_between_samples_differ) {
  std::vector<float> values(100000, 1.0F);
  const Tensor a = f32_tensor({100000}, values);
  values[4321] = 2;
  const Tensor b = f32_tensor({100000}, values);
  EXPECT_EQ(sampled_hash(a), sampled_hash(b));
  EXPECT_FALSE(same_tensor(a, b));
}

}  // namespace
}  // namespace quernel::schedule
