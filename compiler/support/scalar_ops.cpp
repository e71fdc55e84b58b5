#include "support/scalar_ops.h"

namespace quernel {
namespace {
constexpr std::string_view kUnaryNames[] = {
#define QUERNEL_UNARY(name) #name,
#include "support/scalar_ops.def"
};
constexpr std::string_view kBinaryNames[] = {
#define QUERNEL_BINARY(name) #name,
#define QUERNEL_COMPARE(name) #name,
#include "support/scalar_ops.def"
};
template <class Op, size_t N>
std::optional<Op> find(const std::string_view (&names)[N], std::string_view name) {
  for (size_t i = 0; i < N; ++i)
    if (names[i] == name) return static_cast<Op>(i);
  return std::nullopt;
}
}  // namespace

std::string_view to_string(UnaryOp op) { return kUnaryNames[static_cast<size_t>(op)]; }
std::string_view to_string(BinaryOp op) { return kBinaryNames[static_cast<size_t>(op)]; }
std::optional<UnaryOp> parse_unary_op(std::string_view name) { return find<UnaryOp>(kUnaryNames, name); }
std::optional<BinaryOp> parse_binary_op(std::string_view name) { return find<BinaryOp>(kBinaryNames, name); }
bool is_comparison(BinaryOp op) { return op >= BinaryOp::k_eq; }
bool is_predicate(UnaryOp op) { return op == UnaryOp::k_is_nan || op == UnaryOp::k_is_inf; }

}  // namespace quernel
