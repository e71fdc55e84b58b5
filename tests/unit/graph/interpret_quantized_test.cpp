#include <gmock/gmock.h>

#include "graph_testing.h"

namespace quernel {
namespace {

using testing::ElementsAre;

TEST(InterpretQuantized, groups_along_a_dim_the_last_one_shorter) {
  EXPECT_THAT(values(evaluate("%x = constant i8[2,5] {-128, 1, 2, 3, 4, 5, 6, 7, 8, 127}\n"
                              "%s = constant f32[2,3] {0.5, 2, 10, 1, 0.25, 100}\n"
                              "%y = dequantize %x, %s {1, 2} : f32[2,5]\nreturn y = %y")),
              ElementsAre(-64, 0.5, 4, 6, 40, 5, 6, 1.75, 2, 12700));
}

TEST(InterpretQuantized, zero_points_of_four_bits_and_of_floats) {
  const std::string x = "%x = constant u4[4] {0, 5, 10, 15}\n%s = constant f16[2] {0.5, 4}\n";
  EXPECT_THAT(values(evaluate(x + "%z = constant u4[2] {8, 15}\n"
                                  "%y = dequantize %x, %s, %z {2} : f32[4]\nreturn y = %y")),
              ElementsAre(-4, -1.5, -20, 0));
  EXPECT_THAT(values(evaluate(x + "%z = constant f32[2] {0.5, 2.25}\n"
                                  "%y = dequantize %x, %s, %z {2} : f32[4]\nreturn y = %y")),
              ElementsAre(-0.25, 2.25, 31, 51));
}

TEST(InterpretQuantized, groups_along_both_dims) {
  EXPECT_THAT(values(evaluate("%x = constant i4[2,4] {1, 2, 3, 4, 5, 6, 7, -8}\n"
                              "%s = constant f32[1,2] {10, 100}\n"
                              "%y = dequantize %x, %s {2, 2} : f32[2,4]\nreturn y = %y")),
              ElementsAre(10, 20, 300, 400, 50, 60, 700, -800));
}

TEST(InterpretQuantized, rows_of_bytes) {
  EXPECT_THAT(
      values(evaluate("%q = constant i8[2,4] {-127, 1, 2, 3, 4, 5, 6, 127}\n"
                      "%s = constant f32[2,2] {0.5, 2, 10, 1}\n%t = constant f32[2,2] {-63, 10, 90, 133}\n"
                      "%y = dequantize_rows %q, %s, %t {2} : f32[2,4]\nreturn y = %y")),
      ElementsAre(-63.5, 0.5, 4, 6, 40, 50, 6, 127));
}

TEST(InterpretQuantized, rows_of_bytes_with_one_scale) {
  EXPECT_THAT(values(evaluate("%q = constant i8[2,4] {-127, 1, 2, 3, 4, 5, 6, 127}\n"
                              "%s = constant f32[2,1] {0.5, 2}\n%t = constant i32[2,2] {-126, 5, 9, 133}\n"
                              "%y = dequantize_rows %q, %s, %t {2} : f32[2,4]\nreturn y = %y")),
              ElementsAre(-63.5, 0.5, 1, 1.5, 8, 10, 12, 254));
}

TEST(InterpretQuantized, rows_of_digits) {
  EXPECT_THAT(values(evaluate("%p = constant i8[1,4] {1, -1, 0, 2}\n%q = constant i8[1,4] {-127, 1, 2, 3}\n"
                              "%r = constant i8[1,4] {5, 0, -4, 3}\n"
                              "%s = constant f32[1,2] {0.5, 2}\n%t = constant f32[1,2] {-627.5, 498}\n"
                              "%y = dequantize_rows %p, %q, %r, %s, %t {2, 10} : f32[1,4]\nreturn y = %y")),
              ElementsAre(-582.5, -45, 32, 466));
}

}  // namespace
}  // namespace quernel
