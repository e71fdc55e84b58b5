// Words are loaded where they are multiplied, on processors with few registers (keep_loads_apart.h).
#include <gtest/gtest.h>

#include "optimised_ir.h"

namespace quernel {
namespace {

const char* const kBarrier = "call void asm sideeffect \"\", \"~\\{memory\\}\"";

// Each step multiplies two words of x by two words of w each.
const char* const kWords = R"(kernel @words grid(g: 4) {
  buffer %out: i32[8] write binding 0
  buffer %x: i32[64] read binding 1
  buffer %w: i32[32] read binding 2
  alloc %sums: i32[2] register
  %sums[0] = 0i32
  %sums[1] = 0i32
  for k in reduction(8) {
    let x: i32 = %x[g * 16 + k * 2]
    let w: i32 = %w[k * 4]
    %sums[0] = dot(x, w, %sums[0])
    %sums[1] = dot(x, %w[k * 4 + 1], %sums[1])
    let next: i32 = %x[g * 16 + k * 2 + 1]
    %sums[0] = dot(next, %w[k * 4 + 2], %sums[0])
    %sums[1] = dot(next, %w[k * 4 + 3], %sums[1])
  }
  %out[g * 2] = %sums[0]
  %out[g * 2 + 1] = %sums[1]
}
)";

TEST(KeepLoadsApart, a_barrier_keeps_words_behind_the_products_before_them) {
  std::string ir = optimised(kWords, "cortex-m4");
  // x and w first; then w, both, and w again behind products.
  EXPECT_EQ(count(ir, kBarrier), 3u) << ir;
}

TEST(KeepLoadsApart, targets_without_products_of_words_or_with_many_registers_have_none) {
  for (const char* target : {"cortex-m0plus", "riscv32imc", "cortex-m55", "x86-64-v3"})
    EXPECT_EQ(count(optimised(kWords, target), kBarrier), 0u) << target;
}

TEST(KeepLoadsApart, loops_that_store_have_none) {
  std::string ir = optimised(R"(kernel @add grid(g: 4) {
  buffer %out: i32[32] write binding 0
  buffer %x: i32[64] read binding 1
  for k in serial(8) {
    let first: i32 = %x[g * 16 + k * 2] * 3i32
    %out[g * 8 + k] = first + %x[g * 16 + k * 2 + 1]
  }
}
)",
                             "cortex-m4");
  EXPECT_EQ(count(ir, kBarrier), 0u) << ir;
}

}  // namespace
}  // namespace quernel
