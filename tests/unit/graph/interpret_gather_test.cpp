#include <gmock/gmock.h>

#include "graph_testing.h"

namespace quernel {
namespace {

using testing::ElementsAre;

std::vector<double> gather(const std::string& x, const std::string& indices, const std::string& op) {
  return values(
      evaluate("%x = constant " + x + "\n%i = constant " + indices + "\n%y = " + op + "\nreturn y = %y"));
}
const std::string kSix = "f32[3,2] {1, 2, 3, 4, 5, 6}";

// ---- seed traps ----
TEST(SeedTraps, gather_both_conventions) {
  EXPECT_THAT(gather(kSix, "i64[2] {2, 0}", "take %x, %i {0} : f32[2,2]"), ElementsAre(5, 6, 1, 2));
  EXPECT_THAT(gather(kSix, "i64[1,2] {2, 0}", "gather_elements %x, %i {0} : f32[1,2]"), ElementsAre(5, 2));
}

TEST(InterpretGather, take_shapes) {
  EXPECT_THAT(gather(kSix, "i32[] {1}", "take %x, %i {1} : f32[3]"), ElementsAre(2, 4, 6));
  EXPECT_THAT(gather(kSix, "i32[2,1] {1, 0}", "take %x, %i {1} : f32[3,2,1]"), ElementsAre(2, 1, 4, 3, 6, 5));
  EXPECT_THAT(gather(kSix, "i64[0] {}", "take %x, %i {0} : f32[0,2]"), ElementsAre());
}

TEST(InterpretGather, negative_indices_count_from_the_end_and_others_are_clamped) {
  EXPECT_THAT(gather(kSix, "i64[4] {-1, -3, -9, 9}", "take %x, %i {0} : f32[4,2]"),
              ElementsAre(5, 6, 1, 2, 1, 2, 5, 6));
  EXPECT_THAT(gather(kSix, "i64[3,1] {-1, 1, 7}", "gather_elements %x, %i {1} : f32[3,1]"),
              ElementsAre(2, 4, 6));
  EXPECT_THAT(gather("f32[2] {1, 2}", "i64[2] {9223372036854775807, -9223372036854775808}",
                     "take %x, %i {0} : f32[2]"),
              ElementsAre(2, 1));
}

TEST(InterpretGather, tuples) {
  EXPECT_THAT(gather(kSix, "i64[2,2] {0, 1, 2, 0}", "gather_nd %x, %i {0} : f32[2]"), ElementsAre(2, 5));
  EXPECT_THAT(gather(kSix, "i64[2,1] {2, -2}", "gather_nd %x, %i {0} : f32[2,2]"), ElementsAre(5, 6, 3, 4));
  EXPECT_THAT(gather("f32[2,3] {1, 2, 3, 4, 5, 6}", "i64[2,1] {2, 0}", "gather_nd %x, %i {1} : f32[2]"),
              ElementsAre(3, 4));
}

TEST(InterpretGather, nothing_to_gather_from_is_an_error) {
  Graph graph = graph_of(
      "symbol n min=0\ngraph @g(%x: f32[n], %i: i64[1]) {\n %y = take %x, %i {0} : f32[1]\n return y = "
      "%y\n}");
  Expected<std::vector<Tensor>> outputs = interpret(graph, {f32_tensor({0}, {}), i64_tensor({1}, {0})});
  ASSERT_FALSE(outputs);
  EXPECT_THAT(to_string(outputs.errors()),
              testing::HasSubstr("expected elements to choose from, found too few in f32[0]"));
}

}  // namespace
}  // namespace quernel
