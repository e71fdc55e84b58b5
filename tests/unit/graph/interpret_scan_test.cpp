// Scans, sorted positions and random numbers.
#include <gmock/gmock.h>

#include "graph_testing.h"

namespace quernel {
namespace {

using testing::ElementsAre;
using testing::NanSensitiveDoubleEq;

std::vector<double> one(const std::string& x, const std::string& op) {
  return values(evaluate("%x = constant " + x + "\n%y = " + op + "\nreturn y = %y"));
}
const std::string kFour = "f32[4] {3, 1, 2, 4}";

TEST(InterpretScan, kinds) {
  EXPECT_THAT(one(kFour, "scan_sum %x {0} acc f32 : f32[4]"), ElementsAre(3, 4, 6, 10));
  EXPECT_THAT(one(kFour, "scan_prod %x {0} acc f32 : f32[4]"), ElementsAre(3, 3, 6, 24));
  EXPECT_THAT(one(kFour, "scan_max %x {0} : f32[4]"), ElementsAre(3, 3, 3, 4));
  EXPECT_THAT(one(kFour, "scan_min %x {0} reverse : f32[4]"), ElementsAre(1, 1, 2, 4));
  EXPECT_THAT(one("bool[3] {false, true, false}", "scan_max %x {0} : bool[3]"), ElementsAre(0, 1, 1));
}

TEST(InterpretScan, exclusive_starts_at_the_identity) {
  EXPECT_THAT(one(kFour, "scan_sum %x {0} exclusive acc f32 : f32[4]"), ElementsAre(0, 3, 4, 6));
  EXPECT_THAT(one(kFour, "scan_sum %x {0} exclusive reverse acc f32 : f32[4]"), ElementsAre(7, 6, 4, 0));
  EXPECT_THAT(one(kFour, "scan_prod %x {0} exclusive acc f32 : f32[4]"), ElementsAre(1, 3, 3, 6));
  EXPECT_THAT(one("i8[2] {5, 6}", "scan_max %x {0} exclusive : i8[2]"), ElementsAre(-128, 5));
  EXPECT_THAT(one("f32[2] {5, 6}", "scan_min %x {0} exclusive : f32[2]"), ElementsAre(INFINITY, 5));
  EXPECT_THAT(one("bool[2] {false, true}", "scan_min %x {0} exclusive : bool[2]"), ElementsAre(1, 0));
}

TEST(InterpretScan, along_an_inner_axis) {
  EXPECT_THAT(one("i32[2,3] {1, 2, 3, 4, 5, 6}", "scan_sum %x {0} acc i32 : i32[2,3]"),
              ElementsAre(1, 2, 3, 5, 7, 9));
  EXPECT_THAT(one("i32[2,3] {1, 2, 3, 4, 5, 6}", "scan_sum %x {1} acc i32 : i32[2,3]"),
              ElementsAre(1, 3, 6, 4, 9, 15));
  EXPECT_THAT(one("f32[0,2] {}", "scan_sum %x {0} acc f32 : f32[0,2]"), ElementsAre());
}

TEST(InterpretScan, accumulators) {
  EXPECT_THAT(one("f16[3] {2048, 1, 1}", "scan_sum %x {0} acc f32 : f16[3]"), ElementsAre(2048, 2048, 2050));
  EXPECT_THAT(one("i8[3] {100, 100, 100}", "scan_sum %x {0} acc i32 : i8[3]"), ElementsAre(100, -56, 44));
  EXPECT_THAT(one("f32[3] {1, nan, 2}", "scan_max %x {0} : f32[3]"),
              ElementsAre(1, NanSensitiveDoubleEq(NAN), NanSensitiveDoubleEq(NAN)));
  EXPECT_TRUE(std::signbit(one("f32[1] {-0}", "scan_sum %x {0} acc f32 : f32[1]")[0]));
}

TEST(InterpretSort, stable_in_both_directions) {
  EXPECT_THAT(one("f32[5] {2, 1, 2, 3, 1}", "argsort %x {0} : i64[5]"), ElementsAre(1, 4, 0, 2, 3));
  EXPECT_THAT(one("f32[5] {2, 1, 2, 3, 1}", "argsort %x {0} descending : i64[5]"),
              ElementsAre(3, 0, 2, 1, 4));
  EXPECT_THAT(one("f32[2] {0, -0}", "argsort %x {0} : i64[2]"), ElementsAre(0, 1));
}

TEST(InterpretSort, the_first_few) {
  EXPECT_THAT(one("i32[2,3] {3, 1, 2, 4, 6, 5}", "argsort %x {1} descending : i64[2,2]"),
              ElementsAre(0, 2, 1, 2));
  EXPECT_THAT(one("i32[3,2] {3, 1, 2, 4, 6, 5}", "argsort %x {0} : i64[1,2]"), ElementsAre(1, 0));
  EXPECT_THAT(one("f32[3] {3, 1, 2}", "argsort %x {0} : i64[0]"), ElementsAre());
}

TEST(InterpretSort, nan_is_the_greatest) {
  EXPECT_THAT(one("f32[4] {nan, inf, -inf, nan}", "argsort %x {0} : i64[4]"), ElementsAre(2, 1, 0, 3));
  EXPECT_THAT(one("f32[4] {1, nan, inf, nan}", "argsort %x {0} descending : i64[4]"),
              ElementsAre(1, 3, 2, 0));
}

TEST(InterpretSort, integers_by_their_signedness) {
  EXPECT_THAT(one("u64[2] {18446744073709551615, 1}", "argsort %x {0} : i64[2]"), ElementsAre(1, 0));
  EXPECT_THAT(one("i64[2] {-1, -9223372036854775808}", "argsort %x {0} : i64[2]"), ElementsAre(1, 0));
  EXPECT_THAT(one("bool[3] {true, false, true}", "argsort %x {0} : i64[3]"), ElementsAre(1, 0, 2));
}

// ---- seed traps ----
TEST(SeedTraps, threefry_known_answers) {
  // Word 0 is the low half.
  Tensor y = evaluate(
      "%k = constant u64[3] {0, 18446744073709551615, 247824715720788526}\n"
      "%c = constant u64[3] {0, 18446744073709551615, 9629550131187509896}\n"
      "%y = threefry2x32 %k, %c : u64[3]\nreturn y = %y");
  EXPECT_EQ(y.at<uint64_t>(0), 0x99ba4efe6b200159u);
  EXPECT_EQ(y.at<uint64_t>(1), 0xbb002be71cb996fcu);
  EXPECT_EQ(y.at<uint64_t>(2), 0x483df7a0c4923a9cu);
}

}  // namespace
}  // namespace quernel
