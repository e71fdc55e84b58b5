// What the builders fold at once; the simplify pass does the rest.
#include "loop/ir.h"

#include <gtest/gtest.h>

#include "loop/print.h"
#include "loop/rewrite.h"

namespace quernel::loop {
namespace {

class Builders : public testing::Test {
 protected:
  Expr x = var_ref(make_var("x")), y = var_ref(make_var("y"));
  Expr f = var_ref(make_var("f", {DType::kF32, 1}));
  static Expr c(int64_t value) { return const_index(value); }
  static Expr op(BinaryOp o, Expr a, Expr b) { return binary(o, std::move(a), std::move(b)); }
};

TEST_F(Builders, fold_index_identities) {
  EXPECT_EQ(x + c(0), x);
  EXPECT_EQ(c(0) + x, x);
  EXPECT_EQ(x * c(1), x);
  EXPECT_EQ(to_string(x * c(0)), "0");
  EXPECT_EQ(to_string(x - x), "0");
  EXPECT_EQ(to_string(op(BinaryOp::k_idiv, c(0), x)), "0");
  EXPECT_EQ(to_string(op(BinaryOp::k_mod, x, c(1))), "0");
  EXPECT_EQ(op(BinaryOp::k_fdiv, x, c(1)), x);
  EXPECT_EQ(op(BinaryOp::k_max, x, x), x);
  EXPECT_EQ(to_string(op(BinaryOp::k_lt, x, x)), "false");
  EXPECT_EQ(to_string(op(BinaryOp::k_fdiv, c(-7), c(2))), "-4");
}

TEST_F(Builders, merge_constants) {
  EXPECT_EQ(to_string((x + c(3)) + c(4)), "x + 7");
  EXPECT_EQ(to_string((c(3) + x) - c(3)), "x");
  EXPECT_EQ(to_string((x * c(4)) * c(2)), "x * 8");
  EXPECT_EQ(to_string((x + c(3)) + (y + c(4))), "x + y + 7");
  EXPECT_EQ(to_string(op(BinaryOp::k_min, op(BinaryOp::k_min, x, c(3)), c(5))), "min(x, 3)");
}

TEST_F(Builders, fold_conditions) {
  Expr less = op(BinaryOp::k_lt, x, y), yes = const_int(DType::kBool, 1), no = const_int(DType::kBool, 0);
  EXPECT_EQ(op(BinaryOp::k_and, less, yes), less);
  EXPECT_EQ(op(BinaryOp::k_or, no, less), less);
  EXPECT_EQ(op(BinaryOp::k_and, less, less), less);
  EXPECT_EQ(to_string(op(BinaryOp::k_and, less, no)), "false");
  EXPECT_EQ(to_string(unary(UnaryOp::k_not, less)), "x >= y");
  EXPECT_EQ(select(yes, x, y), x);
  EXPECT_EQ(select(less, x, x), x);
  Expr ordered = op(BinaryOp::k_lt, f, f);  // false for NaN, too
  EXPECT_EQ(to_string(ordered), "f < f");
  EXPECT_EQ(to_string(unary(UnaryOp::k_not, ordered)), "not(f < f)");
}

TEST_F(Builders, ramp_algebra) {
  Expr lanes = ramp(c(0), 1, 8);
  EXPECT_EQ(to_string(x * c(8) + lanes), "ramp(x * 8, 1, 8)");
  EXPECT_EQ(to_string(lanes * c(4) + y), "ramp(y, 4, 8)");
  EXPECT_EQ(to_string(x - lanes), "ramp(x, -1, 8)");
  EXPECT_EQ(to_string(lanes + lanes), "ramp(0, 2, 8)");
  EXPECT_EQ(to_string(lanes - lanes), "splat(0, 8)");
  EXPECT_EQ(to_string(op(BinaryOp::k_idiv, ramp(c(16), 4, 8), c(4))), "ramp(4, 1, 8)");
  EXPECT_EQ(to_string(ramp(x, 0, 8)), "broadcast(x, 8)");
  EXPECT_EQ(ramp(x, 3, 1), x);
}

TEST_F(Builders, operations_on_broadcasts_are_broadcasts) {
  EXPECT_EQ(to_string(broadcast(f, 4) * broadcast(f, 4)), "broadcast(f * f, 4)");
  EXPECT_EQ(to_string(unary(UnaryOp::k_exp, broadcast(f, 4))), "broadcast(exp(f), 4)");
  EXPECT_EQ(to_string(cast(DType::kF32, broadcast(x, 4))), "broadcast(cast(f32, x), 4)");
  EXPECT_EQ(to_string(mul_acc(broadcast(f, 4), f, f)), "broadcast(mulacc(f, f, f), 4)");
  EXPECT_EQ(to_string(f + cast(DType::kF32, ramp(x, 1, 4))), "broadcast(f, 4) + cast(f32, ramp(x, 1, 4))");
  EXPECT_EQ(to_string(reduce_lanes(BinaryOp::k_max, broadcast(f, 4))), "f");
}

TEST_F(Builders, floats_are_left_alone) {
  Expr zero = const_float(DType::kF32, 0), one = const_float(DType::kF32, 1);
  EXPECT_EQ(to_string(f + zero), "f + 0f32");  // -0 + 0 is 0
  EXPECT_EQ(to_string(f * zero), "f * 0f32");  // NaN * 0 is NaN
  EXPECT_EQ(to_string(one + one), "1f32 + 1f32");
}

TEST_F(Builders, casts_of_constants_are_exact) {
  EXPECT_EQ(to_string(cast(DType::kF16, const_float(DType::kF32, 65520))), "f16(0x7c00)");
  EXPECT_EQ(to_string(cast(DType::kU8, const_float(DType::kF32, 300))), "255u8");
  EXPECT_EQ(to_string(bitcast({DType::kU32, 1}, const_float(DType::kF32, 1))), "1065353216u32");
}

}  // namespace
}  // namespace quernel::loop
