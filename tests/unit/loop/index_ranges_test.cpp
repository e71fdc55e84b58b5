// Ranges of index arithmetic: through loops of computed extents, and through buffers that the kernel
// allocates.
#include "loop/index_ranges.h"

#include <gtest/gtest.h>

#include <functional>

#include "loop/parse.h"

namespace quernel::loop {
namespace {

// Of the index of the last store to %y in a kernel with these statements.
Interval index_of_store(const std::string& statements) {
  Expected<Kernel> kernel = parse_kernel(
      "kernel @k {\n  buffer %x: f32[4096] read binding 0\n  buffer %n: i64[4096] read binding 1\n"
      "  buffer %y: f32[4096] write binding 2\n  buffer %n8: u8[1] read binding 3\n" +
      statements + "}\n");
  if (!kernel) {
    ADD_FAILURE() << to_string(kernel.errors());
    return {};
  }
  IndexRanges ranges;
  ranges.bound_elements(*kernel->body);
  Interval found;
  std::function<void(const StmtNode&)> visit = [&](const StmtNode& s) {
    if (s.kind == StmtKind::kStore && s.buffer->name == "y") found = ranges(s.index);
    for (const Stmt& child : s.body)
      if (child) visit(*child);
  };
  visit(*kernel->body);
  return found;
}

void expect_range(const std::string& statements, int64_t lo, int64_t hi) {
  Interval range = index_of_store(statements);
  EXPECT_EQ(range.lo, lo) << statements;
  EXPECT_EQ(range.hi, hi) << statements;
}

TEST(IndexRanges, extent_that_the_last_tile_shortens) {
  expect_range(
      "for g in serial(3) {\n for i in serial(min(10, 24 - g * 10)) {\n %y[g * 10 + i] = 1f32\n }\n}\n", 0,
      29);
}

TEST(IndexRanges, extent_from_memory) {
  Interval range = index_of_store("for i in serial(%n[0]) {\n %y[i] = 1f32\n}\n");
  EXPECT_EQ(range.lo, 0);
  EXPECT_FALSE(range.finite());
}

TEST(IndexRanges, division_by_what_is_positive) {
  const std::string by = "let by: i64 = max(cast(i64, %n8[0]), 1)\n";
  expect_range("for i in serial(9) {\n " + by + " %y[idiv(i, by)] = 1f32\n}\n", 0, 8);
  expect_range("for i in serial(9) {\n " + by + " %y[fmod(i, by)] = 1f32\n}\n", 0, 8);
  expect_range("for i in serial(900) {\n " + by + " %y[fmod(i, by) + 5] = 1f32\n}\n", 5, 260);
}

TEST(IndexRanges, offsets_of_rows) {
  expect_range(
      "for i in serial(4) {\n alloc %rows: i64[2] register\n %rows[0] = i * 100\n %rows[1] = i * 100 + 50\n"
      " for k in serial(50) {\n %y[%rows[1] + k] = 1f32\n }\n}\n",
      0, 399);
}

// Through two buffers, and in any order of the statements.
TEST(IndexRanges, offsets_of_offsets) {
  expect_range(
      "alloc %a: i64[1] register\nalloc %b: i64[1] register\n%a[0] = 7\n%b[0] = %a[0] * 10\n"
      "for i in serial(3) {\n %y[%b[0] + i] = 1f32\n}\n",
      70, 72);
}

// A buffer that keeps its own value, as that of the largest element so far does.
TEST(IndexRanges, index_of_the_largest_element) {
  expect_range(
      "alloc %best: i64[1] register\n%best[0] = 0\nfor i in serial(60) {\n"
      " %best[0] = select(%x[i] > %x[%best[0]], i, %best[0])\n}\n%y[%best[0]] = 1f32\n",
      0, 59);
}

// What grows from step to step, and what memory says, may be anything.
TEST(IndexRanges, elements_that_nothing_bounds) {
  EXPECT_FALSE(
      index_of_store("alloc %a: i64[1] register\n%a[0] = 0\nfor i in serial(60) {\n %a[0] = %a[0] + 1\n}\n"
                     "%y[%a[0]] = 1f32\n")
          .finite());
  EXPECT_FALSE(
      index_of_store("alloc %a: i64[1] register\n%a[0] = 3\n%a[0] = %n[5]\n%y[%a[0]] = 1f32\n").finite());
}

}  // namespace
}  // namespace quernel::loop
