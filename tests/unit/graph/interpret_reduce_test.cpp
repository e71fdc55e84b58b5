#include <gmock/gmock.h>

#include <limits>

#include "graph_testing.h"

namespace quernel {
namespace {

using testing::ElementsAre;
using testing::NanSensitiveDoubleEq;
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> reduce(const std::string& x, const std::string& op) {
  return values(evaluate("%x = constant " + x + "\n%y = " + op + "\nreturn y = %y"));
}
const std::string kCube = "f32[2,2,2] {1, 2, 3, 4, 5, 6, 7, 8}";

TEST(InterpretReduce, kinds) {
  EXPECT_THAT(reduce(kCube, "reduce_prod %x {0, 1} acc f32 : f32[2]"), ElementsAre(105, 384));
  EXPECT_THAT(reduce(kCube, "reduce_max %x {0} : f32[2,2]"), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(reduce(kCube, "reduce_min %x {2} keepdims : f32[2,2,1]"), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(reduce("bool[2,2] {true, true, true, false}", "reduce_and %x {1} : bool[2]"),
              ElementsAre(1, 0));
  EXPECT_THAT(reduce("bool[2,2] {false, false, true, false}", "reduce_or %x {1} : bool[2]"),
              ElementsAre(0, 1));
  EXPECT_THAT(reduce("i32[2] {12, 10}", "reduce_and %x {0} : i32[]"), ElementsAre(8));
}

TEST(InterpretReduce, accumulators) {
  // 2048 + 1 is not a f16: only a wider accumulator counts the ones.
  EXPECT_THAT(reduce("f16[3] {2048, 1, 1}", "reduce_sum %x {0} acc f32 : f16[]"), ElementsAre(2050));
  EXPECT_THAT(reduce("i8[3] {100, 100, 100}", "reduce_sum %x {0} acc i32 : i8[]"), ElementsAre(44));
  EXPECT_THAT(reduce("f32[4] {16777216, 1, 1, -16777216}", "reduce_sum %x {0} acc f32 : f32[]"),
              ElementsAre(2));
}

TEST(InterpretReduce, sum_of_one_element_is_that_element) {
  EXPECT_TRUE(std::signbit(reduce("f32[1] {-0}", "reduce_sum %x {0} acc f32 : f32[]")[0]));
  EXPECT_FALSE(std::signbit(reduce("f32[0] {}", "reduce_sum %x {0} acc f32 : f32[]")[0]));
}

TEST(InterpretReduce, nan_wins) {
  EXPECT_THAT(reduce("f32[3] {1, nan, 2}", "reduce_max %x {0} : f32[]"),
              ElementsAre(NanSensitiveDoubleEq(NAN)));
  EXPECT_THAT(reduce("f32[3] {nan, 3, 2}", "reduce_min %x {0} : f32[]"),
              ElementsAre(NanSensitiveDoubleEq(NAN)));
  EXPECT_THAT(reduce("f32[4] {5, nan, 9, nan}", "reduce_argmax %x {0} : i64[]"), ElementsAre(1));
  EXPECT_THAT(reduce("f32[4] {5, nan, 9, nan}", "reduce_argmin %x {0} last : i64[]"), ElementsAre(3));
}

TEST(InterpretReduce, arg_positions) {
  EXPECT_THAT(reduce("f32[2,3] {1, 3, 3, 2, 0, 0}", "reduce_argmax %x {1} : i64[2]"), ElementsAre(1, 0));
  EXPECT_THAT(reduce("f32[2,3] {1, 3, 3, 2, 0, 0}", "reduce_argmax %x {1} last : i32[2]"), ElementsAre(2, 0));
  EXPECT_THAT(reduce("f32[2,3] {1, 3, 3, 2, 0, 0}", "reduce_argmin %x {1} keepdims : i64[2,1]"),
              ElementsAre(0, 1));
  EXPECT_THAT(reduce("f32[2,3] {1, 3, 3, 2, 0, 0}", "reduce_argmin %x {1} last : i64[2]"), ElementsAre(0, 2));
  EXPECT_THAT(reduce("u64[2] {1, 18446744073709551615}", "reduce_argmax %x {0} : i64[]"), ElementsAre(1));
  EXPECT_THAT(reduce("f32[2] {-inf, -inf}", "reduce_argmax %x {0} : i64[]"), ElementsAre(0));
}

// ---- seed traps ----
TEST(SeedTraps, reduce_axis_subset) {
  const char* axes[] = {"{}", "{0}", "{1}", "{2}", "{0, 1}", "{0, 2}", "{1, 2}", "{0, 1, 2}"};
  const std::vector<std::vector<double>> sums = {{1, 2, 3, 4, 5, 6, 7, 8},
                                                 {6, 8, 10, 12},
                                                 {4, 6, 12, 14},
                                                 {3, 7, 11, 15},
                                                 {16, 20},
                                                 {14, 22},
                                                 {10, 26},
                                                 {36}};
  const char* dropped[] = {"[2,2,2]", "[2,2]", "[2,2]", "[2,2]", "[2]", "[2]", "[2]", "[]"};
  const char* kept[] = {"[2,2,2]", "[1,2,2]", "[2,1,2]", "[2,2,1]",
                        "[1,1,2]", "[1,2,1]", "[2,1,1]", "[1,1,1]"};
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(reduce(kCube, std::string("reduce_sum %x ") + axes[i] + " acc f32 : f32" + dropped[i]),
              sums[i]);
    EXPECT_EQ(reduce(kCube, std::string("reduce_sum %x ") + axes[i] + " keepdims acc f32 : f32" + kept[i]),
              sums[i]);
  }
}

TEST(SeedTraps, reduce_identities) {
  EXPECT_THAT(reduce("i32[2] {-5, -3}", "reduce_max %x {0} : i32[]"), ElementsAre(-3));
  EXPECT_THAT(reduce("bool[2] {false, false}", "reduce_max %x {0} : bool[]"), ElementsAre(0));
  EXPECT_THAT(reduce("bool[2] {true, true}", "reduce_min %x {0} : bool[]"), ElementsAre(1));
  EXPECT_THAT(reduce("i32[0] {}", "reduce_max %x {0} : i32[]"), ElementsAre(-2147483648.0));
  EXPECT_THAT(reduce("u8[0] {}", "reduce_min %x {0} : u8[]"), ElementsAre(255));
  EXPECT_THAT(reduce("i8[0] {}", "reduce_min %x {0} : i8[]"), ElementsAre(127));
  EXPECT_THAT(reduce("f32[0,2] {}", "reduce_max %x {0} : f32[2]"), ElementsAre(-kInf, -kInf));
  EXPECT_THAT(reduce("f32[0] {}", "reduce_prod %x {0} acc f32 : f32[]"), ElementsAre(1));
  EXPECT_THAT(reduce("bool[0] {}", "reduce_and %x {0} : bool[]"), ElementsAre(1));
  EXPECT_THAT(reduce("bool[0] {}", "reduce_max %x {0} : bool[]"), ElementsAre(0));
}

}  // namespace
}  // namespace quernel
