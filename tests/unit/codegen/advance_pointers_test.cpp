// Sums on processors with few registers read from pointers that advance (advance_pointers.h).
#include <gtest/gtest.h>

#include <algorithm>

#include "optimised_ir.h"

namespace quernel {
namespace {

// Two rows of x, 8 apart, times w, whose elements a window of 3 lines of 6 reads one after another.
const char* const kWindow = R"(kernel @window grid(g: 4) {
  buffer %out: i32[8] write binding 0
  buffer %x: i8[640] read binding 1
  buffer %w: i8[72] read binding 2
  alloc %sums: i32[2] register
  %sums[0] = 0i32
  %sums[1] = 0i32
  for line in reduction(3) {
    for k in reduction(6) {
      let w: i32 = cast(i32, %w[g * 18 + line * 6 + k])
      %sums[0] = cast(i32, %x[g * 16 + line * 160 + k]) * w + %sums[0]
      %sums[1] = cast(i32, %x[g * 16 + line * 160 + k + 8]) * w + %sums[1]
    }
  }
  %out[g * 2] = %sums[0]
  %out[g * 2 + 1] = %sums[1]
}
)";

TEST(AdvancePointers, rows_at_a_constant_distance_share_a_pointer_in_each_loop) {
  std::string ir = optimised(kWindow, "cortex-m4");
  EXPECT_EQ(count(ir, "= phi ptr "), 4u) << ir;  // of x and of w, in both loops
  EXPECT_EQ(count(ir, "call ptr asm"), 4u) << "each advances once:\n" << ir;
  EXPECT_EQ(count(ir, "icmp (eq|ne) ptr "), 2u) << "pointers end both loops:\n" << ir;
}

TEST(AdvancePointers, no_load_is_where_its_pointer_will_be_next) {
  // x is read at k and at k + 1, which is where the pointer of step k goes to.
  std::string ir = optimised(R"(kernel @neighbours grid(g: 4) {
  buffer %out: i32[4] write binding 0
  buffer %x: i8[80] read binding 1
  alloc %sums: i32[1] register
  %sums[0] = 0i32
  for k in reduction(9) {
    %sums[0] = cast(i32, %x[g * 20 + k]) * cast(i32, %x[g * 20 + k + 1]) + %sums[0]
  }
  %out[g] = %sums[0]
}
)",
                             "cortex-m4");
  EXPECT_EQ(count(ir, "= phi ptr "), 1u) << ir;
  EXPECT_EQ(count(ir, "getelementptr i8, ptr %pointer, i32 1\n"), 1u) << "only the advance:\n" << ir;
}

TEST(AdvancePointers, rows_beyond_the_reach_of_an_offset_share_another_pointer) {
  // A Cortex-M0+ adds at most 31 to a pointer: rows 40 and 50 elements on have another one, 10 apart.
  std::string ir = optimised(R"(kernel @far_rows grid(g: 4) {
  buffer %out: i32[4] write binding 0
  buffer %x: i8[800] read binding 1
  alloc %sums: i32[1] register
  %sums[0] = 0i32
  for k in reduction(9) {
    %sums[0] = cast(i32, %x[g * 200 + k]) * cast(i32, %x[g * 200 + k + 40]) + %sums[0]
    %sums[0] = cast(i32, %x[g * 200 + k + 50]) + %sums[0]
  }
  %out[g] = %sums[0]
}
)",
                             "cortex-m0plus");
  EXPECT_EQ(count(ir, "= phi ptr "), 2u) << ir;
  EXPECT_EQ(count(ir, "getelementptr i8, ptr %pointer[0-9]*, i32 10\n"), 1u) << ir;
}

// A panel of eight words, which a sum reads, and other words; `behind`: the place of one that is read after the sum.
std::string after_sum(const std::string& behind, const std::string& preset) {
  std::string ir = optimised(R"(kernel @panel grid(g: 4) {
  buffer %out: i32[4] write binding 0
  buffer %x: i32[32] read binding 1
  buffer %w: i32[8192] read binding 2
  alloc %sums: i32[1] register
  %sums[0] = 0i32
  for k in reduction(8) {
    %sums[0] = %x[g * 8 + k] * %w[g * 24 + k] + %sums[0]
  }
  %out[g] = %sums[0] * %w[)" + behind +
                                 R"(]
}
)",
                             preset);
  EXPECT_EQ(count(ir, "= phi ptr "), 2u) << ir;
  return ir.substr(std::min(ir.rfind("icmp eq ptr"), ir.rfind("icmp ne ptr")));
}

TEST(AdvancePointers, loads_behind_a_sum_go_on_from_its_pointer) {
  EXPECT_EQ(count(after_sum("g * 24 + 8", "cortex-m4"), "ptr %w,"), 0u) << "it is where the pointer ends";
  EXPECT_EQ(count(after_sum("g * 24 + 10", "cortex-m4"), "getelementptr i8, ptr %[0-9]+, i32 8\n"), 1u);
}

TEST(AdvancePointers, loads_before_the_end_of_a_pointer_or_out_of_its_reach_keep_their_addresses) {
  const std::string from_end = "getelementptr i8, ptr %[0-9]+, i32 ";
  EXPECT_EQ(count(after_sum("g * 24 + 7", "cortex-m4"), from_end + "-4\n"), 0u);
  EXPECT_EQ(count(after_sum("g * 24 + 17", "cortex-m4"), from_end + "36\n"), 1u);
  EXPECT_EQ(count(after_sum("g * 24 + 17", "cortex-m0plus"), from_end + "36\n"), 0u);
  EXPECT_EQ(count(after_sum("8191 - g * 24", "cortex-m4"), "ptr %w,"), 1u) << "at no constant distance";
}

TEST(AdvancePointers, numbers_of_steps_may_be_arguments) {
  std::string ir = optimised(R"(kernel @panel symbols($steps) {
  buffer %out: i32[4] write binding 0
  buffer %x: i32[?] read binding 1
  buffer %w: i32[?] read binding 2
  let steps: i64 = max(cast(i64, cast(u16, $steps)), 1)
  for g in serial(4) {
    alloc %sums: i32[1] register
    %sums[0] = 0i32
    for k in reduction(steps) {
      %sums[0] = %x[g * 8 + k * 2] * %w[g * (steps * 2 + 4) + k * 2] + %sums[0]
      %sums[0] = %x[g * 8 + k * 2 + 1] * %w[g * (steps * 2 + 4) + k * 2 + 1] + %sums[0]
    }
    %out[g] = %sums[0] * %w[g * (steps * 2 + 4) + steps * 2 + 1]
  }
}
)",
                             "cortex-m4");
  EXPECT_EQ(count(ir, "= phi ptr "), 2u) << "neighbours share a pointer:\n" << ir;
  EXPECT_EQ(count(ir, "icmp (eq|ne) ptr "), 1u) << ir;
}

TEST(AdvancePointers, leaves_loops_that_store_alone) {
  std::string ir = optimised(R"(kernel @copy grid(g: 4) {
  buffer %out: i8[80] write binding 0
  buffer %x: i8[80] read binding 1
  for k in serial(20) {
    %out[g * 20 + k] = %x[g * 20 + k]
  }
}
)",
                             "cortex-m4");
  EXPECT_EQ(count(ir, "call ptr asm"), 0u) << ir;
}

// Rows of 64 elements times a row of w; `rows` share a pointer.
std::string product_of_rows(int rows) {
  std::string text =
      "kernel @rows grid(g: 4) {\n  buffer %out: f32[64] write binding 0\n"
      "  buffer %x: f32[2048] read binding 1\n  buffer %w: f32[256] read binding 2\n"
      "  alloc %sums: f32[16] register\n";
  for (int m = 0; m < rows; ++m) text += "  %sums[" + std::to_string(m) + "] = 0f32\n";
  text += "  for k in reduction(64) {\n    let w: f32 = %w[g * 64 + k]\n";
  for (int m = 0; m < rows; ++m) {
    const std::string sum = "%sums[" + std::to_string(m) + "]";
    text += "    " + sum + " = %x[g * 512 + k + " + std::to_string(m * 64) + "] * w + " + sum + "\n";
  }
  text += "  }\n";
  for (int m = 0; m < rows; ++m)
    text += "  %out[g * 16 + " + std::to_string(m) + "] = %sums[" + std::to_string(m) + "]\n";
  return text + "}\n";
}

TEST(AdvancePointers, rows_of_a_product_have_no_index_on_x86) {
  const std::string ir = optimised(product_of_rows(4), "x86-64-v3");
  EXPECT_EQ(count(ir, "= phi ptr "), 1u) << "of x:\n" << ir;
  EXPECT_EQ(count(ir, "call ptr asm"), 1u) << ir;
  EXPECT_EQ(count(ir, "icmp (eq|ne) ptr "), 0u) << "the loop has a counter:\n" << ir;
  EXPECT_EQ(count(optimised(product_of_rows(3), "x86-64-v3"), "call ptr asm"), 0u) << "few loads";
  EXPECT_EQ(count(optimised(product_of_rows(4), "x86-64"), "call ptr asm"), 0u)
      << "instructions of two operands";
}

TEST(AdvancePointers, steps_of_more_than_32_bits) {
  // Lines of x are 8e9 bytes apart; the inner loop advances by 64 of four bytes.
  std::string text = R"(kernel @far_lines grid(g: 4) {
  buffer %out: f32[4] write binding 0
  buffer %x: f32[?] read binding 1
  alloc %sums: f32[1] register
  %sums[0] = 0f32
  for line in reduction(3) {
    for k in reduction(64) {
)";
  for (int m = 0; m < 4; ++m)
    text += "      %sums[0] = %x[line * 2000000000 + k + " + std::to_string(m * 64) + "] + %sums[0]\n";
  text += "    }\n  }\n  %out[g] = %sums[0]\n}\n";
  const std::string ir = optimised(text, "x86-64-v3");
  EXPECT_EQ(count(ir, "i64 7999999744\n"), 1u) << ir;
}

TEST(AdvancePointers, processors_with_many_registers_have_counters) {
  EXPECT_EQ(count(optimised(kWindow, "x86-64-v3"), "call ptr asm"), 0u);
  EXPECT_EQ(count(optimised(kWindow, "cortex-m55"), "call ptr asm"), 0u);
}

}  // namespace
}  // namespace quernel
