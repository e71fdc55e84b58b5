// Scalar operations shared by the graph IR (elementwise ops) and the loop IR (expressions).
//
// Semantics where ONNX leaves room: idiv truncates toward zero, fdiv floors; mod takes the divisor's sign,
// fmod the dividend's; integer x/0 and x%0 give 0; INT_MIN/-1 wraps to INT_MIN; integer add/sub/mul wrap; max
// and min propagate NaN; round is half to even; shl by >= width gives 0, shr by >= width gives 0 or the sign;
// comparisons yield bool; is_nan/is_inf yield bool; sign(NaN) is NaN; `not`, and, or, xor are logical on bool
// and bitwise on integers. threefry2x32(key, counter) is the random function of 20 rounds on u64: of key,
// counter and result, the first word is the low half.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quernel {

enum class UnaryOp : uint8_t {
#define QUERNEL_UNARY(name) k_##name,
#include "support/scalar_ops.def"
};

// Arithmetic first, then comparisons (whose result is bool).
enum class BinaryOp : uint8_t {
#define QUERNEL_BINARY(name) k_##name,
#define QUERNEL_COMPARE(name) k_##name,
#include "support/scalar_ops.def"
};

std::string_view to_string(UnaryOp op);
std::string_view to_string(BinaryOp op);
std::optional<UnaryOp> parse_unary_op(std::string_view name);
std::optional<BinaryOp> parse_binary_op(std::string_view name);
bool is_comparison(BinaryOp op);
// is_nan and is_inf: result bool whatever the operand.
bool is_predicate(UnaryOp op);

}  // namespace quernel
