// Graphs that a long run of random ones found to be compiled wrongly, or not at all; named after what was
// wrong.
#include <gtest/gtest.h>

#include "graph/interpret.h"
#include "graph/text.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {
namespace {

void expect_same(const std::string& text, std::vector<std::string> disabled_passes = {}) {
  Expected<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph) << to_string(graph.errors()) << text;
  std::vector<Tensor> inputs = random_inputs(*graph, 1);
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
  ASSERT_TRUE(want) << to_string(want.errors());
  for (const char* target : {"native", "x86-64"}) {
    CompileOptions options;
    options.targets = {target};
    options.disabled_passes = disabled_passes;
    Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, 1);
    ASSERT_TRUE(got) << to_string(got.errors()) << text;
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_EQ(difference((*got)[i], (*want)[i], 1e-6, 1e-6), "") << target << "\n" << text;
  }
}

// An operand that was written into the place of a cat, where its vectors were no longer contiguous.
TEST(Found, contraction_operand_inside_a_cat) {
  expect_same(R"(graph @g(%x: f64[16,8,1], %w: f64[1]) {
    %n = neg %x : f64[16,8,1]
    %c = cat %x, %n {2} : f64[16,8,2]
    %y = contract %n, %w axes(a: 16, b: 8 | k: 1) a[a, b, k] b[k] out[a, b] acc f64 : f64[16,8]
    return y = %y, c = %c
  })");
}

// Two output axes that become one dim, the outer one empty: was refused.
TEST(Found, contraction_with_an_empty_merged_axis) {
  expect_same(R"(graph @g(%x: f32[0,8,3], %w: f32[0,8,3]) {
    %y = contract %x, %w axes(a: 0, b: 8 | k: 3) a[a, b, k] b[a, b, k] out[8*a + b] acc f32 : f32[0]
    return y = %y
  })");
}

// An operand that is a view and an output: what it is a view of was not stored. Crashed.
TEST(Found, contraction_operand_that_is_an_output_view) {
  expect_same(R"(graph @g(%x: f32[5,7,5], %w: f32[2,13]) {
    %n = neg %x : f32[5,7,5]
    %s = slice %n [0:5, 0:7, 0:3:2] : f32[5,7,2]
    %y = contract %s, %w axes(a: 5, b: 7, c: 13 | k: 2) a[a, b, k] b[k, c] out[a, b, c] acc f32 : f32[5,7,13]
    return s = %s, y = %y
  })");
}

// A kernel that writes a part of an empty cat beside something else: that part began behind the buffer.
TEST(Found, part_of_an_empty_cat) {
  expect_same(R"(graph @g(%x: f32[5,0,8]) {
    %n = neg %x : f32[5,0,8]
    %a = abs %n : f32[5,0,8]
    %p = pad %n [0:0, 3:0, 0:0] fill 0 : f32[5,3,8]
    %c = cat %x, %a, %n {2} : f32[5,0,24]
    return p = %p, c = %c
  })");
}

// An operand that became a constant after contractions had been planned: the plan then wanted a copy. Broke
// an invariant.
TEST(Found, contraction_operand_folded_after_planning) {
  const char* constant_rows = R"(graph @g(%w: f32[3,2]) {
    %c = constant f32[5,3,1] {1, -2, 3, 4, -5, 6, 7, 8, -9, 10, 11, 12, -13, 14, 15}
    %p = pad %c [0:0, 0:0, 1:1] fill 0 : f32[5,3,3]
    %y = contract %p, %w axes(a: 5, c: 3, d: 1 | e: 2) a[a, c, d + 2*e] b[c, e] out[a, c, d] acc f32 : f32[5,3,1]
    return y = %y
  })";
  expect_same(constant_rows);
  expect_same(constant_rows, {"fold-constants"});
}

// A contraction without an axis for vectors whose output has its axes in another order: they were taken in
// their own.
TEST(Found, product_and_sum_in_the_order_of_the_output) {
  expect_same(R"(graph @g(%x: f32[3,4,2,16], %w: f32[16]) {
    %f = flip %x {0, 1, 2, 3} : f32[3,4,2,16]
    %y = contract %f, %w axes(a: 3, b: 4, c: 2 | e: 16) a[a, b, c, e] b[e] out[a, c, b] acc f32 : f32[3,2,4]
    %z = contract %f, %w axes(a: 3, b: 4, c: 2 | e: 16) a[a, b, c, e] b[e] out[b, a + 3*c] acc f32 : f32[4,6]
    return y = %y, z = %z
  })");
}

// A sum that is written over one of its operands, the other one transposed: tiles that overlap added it
// twice.
TEST(Found, transposed_operand_of_an_in_place_sum) {
  expect_same(R"(graph @g(%x: f32[21,37], %z: f32[37,21]) {
    %s = scan_sum %x {1} acc f32 : f32[21,37]
    %p = permute %z {1, 0} : f32[21,37]
    %y = add %s, %p : f32[21,37]
    %r = scan_sum %y {0} acc f32 : f32[21,37]
    return r = %r
  })");
}

// The last vector of a row has one lane: its 16-bit element was stored as a word, over the next row's first.
TEST(Found, one_lane_of_narrow_elements) {
  for (const char* dtype : {"bf16", "f16", "i16", "i8"}) {
    std::string t = dtype, acc = t[0] == 'i' ? "i32" : "f32";
    std::string out = acc == "i32" ? "i32" : t;
    expect_same("graph @g(%x: " + t + "[2,7], %w: " + t + "[17,7]) {\n  %n = neg %x : " + t + "[2,7]\n" +
                "  %m = contract %x, %w axes(a: 2, b: 17 | c: 7) a[a, c] b[b, c] out[a, b] acc " + acc +
                " : " + out + "[2,17]\n  %r = cast %m : " + t + "[2,17]\n" +
                "  %y = cat %n, %n, %r {1} : " + t + "[2,31]\n  return y = %y\n}");
  }
}

// A view that is an output, of rows that a kernel computes: it was taken for the row at its own place.
TEST(Found, stored_view_of_other_rows) {
  expect_same(R"(graph @g(%x: f32[4,2,17]) {
    %n = neg %x : f32[4,2,17]
    %f = flip %n {1} : f32[4,2,17]
    %m = reduce_max %n {2} keepdims : f32[4,2,1]
    return m = %m, f = %f, g = %f
  })");
}

// A maximum of negative bf16, without optimization: 0.
TEST(Found, maximum_of_bf16_without_optimization) {
  expect_same(R"(graph @g(%x: bf16[33]) {
    %a = abs %x : bf16[33]
    %one = constant bf16[1] {1}
    %ones = expand %one : bf16[33]
    %b = add %a, %ones : bf16[33]
    %n = neg %b : bf16[33]
    %y = reduce_max %n {0} keepdims : bf16[1]
    return y = %y
  })",
              {"optimize-code"});
}

// An operand that became a constant after the contraction's plan was made, when an earlier folding was left
// out: there was no plan any more.
TEST(Found, operand_that_folds_late) {
  expect_same(R"(graph @g(%x: f32[17,7]) {
    %1 = pad %x [2:2, 0:0] reflect : f32[21,7]
    %2 = constant f32[] {1.5}
    %3 = reshape %2 : f32[1,1]
    %4 = cast %3 : f16[1,1]
    %5 = expand %4 : f16[21,2]
    %y = contract %1, %5 axes(a: 21, b: 3 | c: 2) a[a, 2*b + c] b[a, c] out[a, b] acc f32 : f32[21,3]
    return y = %y
  })",
              {"fold-constants"});
}

}  // namespace
}  // namespace quernel::testing
