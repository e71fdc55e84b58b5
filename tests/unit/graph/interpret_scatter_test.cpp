#include <gmock/gmock.h>

#include "graph_testing.h"

namespace quernel {
namespace {

using testing::ElementsAre;

std::vector<double> scatter(const std::string& x, const std::string& indices, const std::string& updates,
                            const std::string& op) {
  return values(evaluate("%x = constant " + x + "\n%i = constant " + indices + "\n%u = constant " + updates +
                         "\n%y = " + op + "\nreturn y = %y"));
}
const std::string kThree = "f32[3] {1, 2, 3}";

// ---- seed traps ----
TEST(SeedTraps, scatter_set_add_duplicates) {
  auto duplicates = [](const std::string& mode) {
    return scatter(kThree, "i64[4] {1, 1, 0, 1}", "f32[4] {10, 20, 30, 40}",
                   "scatter_elements %x, %i, %u {0} " + mode + " : f32[3]");
  };
  EXPECT_THAT(duplicates("set"), ElementsAre(30, 40, 3));
  EXPECT_THAT(duplicates("add"), ElementsAre(31, 72, 3));
  EXPECT_THAT(duplicates("mul"), ElementsAre(30, 16000, 3));
  EXPECT_THAT(duplicates("max"), ElementsAre(30, 40, 3));
  EXPECT_THAT(duplicates("min"), ElementsAre(1, 2, 3));
}

TEST(InterpretScatter, elements_along_an_axis) {
  EXPECT_THAT(scatter("i32[2,3] {1, 2, 3, 4, 5, 6}", "i64[1,2] {1, 0}", "i32[1,2] {70, 80}",
                      "scatter_elements %x, %i, %u {0} set : i32[2,3]"),
              ElementsAre(1, 80, 3, 70, 5, 6));
  EXPECT_THAT(scatter("i32[2,3] {1, 2, 3, 4, 5, 6}", "i32[2,2] {2, 0, -1, -3}", "i32[2,2] {7, 8, 9, 10}",
                      "scatter_elements %x, %i, %u {1} set unique : i32[2,3]"),
              ElementsAre(8, 2, 7, 10, 5, 9));
}

TEST(InterpretScatter, rows) {
  EXPECT_THAT(scatter("f32[3,2] {1, 2, 3, 4, 5, 6}", "i64[2] {2, 0}", "f32[2,2] {7, 8, 9, 10}",
                      "scatter_rows %x, %i, %u {0} set : f32[3,2]"),
              ElementsAre(9, 10, 3, 4, 7, 8));
  EXPECT_THAT(scatter("f32[2,3] {1, 2, 3, 4, 5, 6}", "i64[] {-1}", "f32[2] {7, 8}",
                      "scatter_rows %x, %i, %u {1} add : f32[2,3]"),
              ElementsAre(1, 2, 10, 4, 5, 14));
}

TEST(InterpretScatter, tuples) {
  EXPECT_THAT(scatter("f32[2,2] {1, 2, 3, 4}", "i64[2,2] {0, 1, -1, 0}", "f32[2] {7, 8}",
                      "scatter_nd %x, %i, %u {0} set : f32[2,2]"),
              ElementsAre(1, 7, 8, 4));
  EXPECT_THAT(scatter("f32[2,2] {1, 2, 3, 4}", "i64[1,1] {1}", "f32[1,2] {7, 8}",
                      "scatter_nd %x, %i, %u {0} set : f32[2,2]"),
              ElementsAre(1, 2, 7, 8));
  EXPECT_THAT(scatter("f32[2,2] {1, 2, 3, 4}", "i64[2,1] {1, 0}", "f32[2] {7, 8}",
                      "scatter_nd %x, %i, %u {1} set : f32[2,2]"),
              ElementsAre(1, 7, 8, 4));
}

TEST(InterpretScatter, updates_out_of_range_are_ignored) {
  EXPECT_THAT(scatter(kThree, "i64[4] {3, -4, 9223372036854775807, -1}", "f32[4] {7, 8, 9, 10}",
                      "scatter_elements %x, %i, %u {0} set : f32[3]"),
              ElementsAre(1, 2, 10));
  EXPECT_THAT(scatter("f32[2,2] {1, 2, 3, 4}", "i64[2,2] {0, 2, 1, 1}", "f32[2] {7, 8}",
                      "scatter_nd %x, %i, %u {0} set : f32[2,2]"),
              ElementsAre(1, 2, 3, 8));
}

TEST(InterpretScatter, rounds_and_wraps_at_each_update) {
  EXPECT_THAT(scatter("f16[1] {2048}", "i64[2] {0, 0}", "f16[2] {1, 1}",
                      "scatter_elements %x, %i, %u {0} add : f16[1]"),
              ElementsAre(2048));
  EXPECT_THAT(
      scatter("u8[1] {250}", "i64[1] {0}", "u8[1] {10}", "scatter_elements %x, %i, %u {0} add : u8[1]"),
      ElementsAre(4));
  EXPECT_THAT(scatter("u64[1] {18446744073709551615}", "i64[1] {0}", "u64[1] {1}",
                      "scatter_elements %x, %i, %u {0} min : u64[1]"),
              ElementsAre(1));
}

TEST(InterpretScatter, set_keeps_the_bits_of_nan) {
  Tensor y = evaluate(
      "%x = constant f32[1] {0}\n%i = constant i64[1] {0}\n%u = constant f32[1] {bits(0x7fc00123)}\n"
      "%y = scatter_elements %x, %i, %u {0} set : f32[1]\nreturn y = %y");
  EXPECT_EQ(y.at<uint32_t>(0), 0x7fc00123u);
}

}  // namespace
}  // namespace quernel
