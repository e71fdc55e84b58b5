#include "codegen/text/language.h"

#include <algorithm>
#include <cctype>

#include "support/diagnostic.h"

namespace quernel::codegen {
namespace {

constexpr Spelling kC = {
    "&",          "|",          "^",   "(!", ")", "int32_t", "qnl_bits_f32", "qnl_bits_f64",
    "qnl_f32_of", "qnl_f64_of", false, true, true};
constexpr Spelling kGlsl = {"&&",
                            "||",
                            "^^",
                            "!",
                            "",
                            "int",
                            "floatBitsToUint",
                            "doubleBitsToUint64",
                            "uintBitsToFloat",
                            "uint64BitsToDouble",
                            true,
                            false,
                            false};

struct Operator {
  BinaryOp op;
  const char* text;
  bool on_integers, on_floats;
};
constexpr Operator kOperators[] = {
    {BinaryOp::k_add, "+", true, true},  {BinaryOp::k_sub, "-", true, true},
    {BinaryOp::k_mul, "*", true, true},  {BinaryOp::k_div, "/", false, true},
    {BinaryOp::k_and, "&", true, false}, {BinaryOp::k_or, "|", true, false},
    {BinaryOp::k_xor, "^", true, false}, {BinaryOp::k_eq, "==", true, true},
    {BinaryOp::k_ne, "!=", true, true},  {BinaryOp::k_lt, "<", true, true},
    {BinaryOp::k_le, "<=", true, true},  {BinaryOp::k_gt, ">", true, true},
    {BinaryOp::k_ge, ">=", true, true},
};

// On truth values: an operator, and which operands are negated in front of it.
struct BoolOperator {
  BinaryOp op;
  const char* Spelling::*text;
  bool not_a, not_b;
};
constexpr BoolOperator kBoolOperators[] = {
    {BinaryOp::k_add, &Spelling::either, false, false}, {BinaryOp::k_max, &Spelling::either, false, false},
    {BinaryOp::k_or, &Spelling::either, false, false},  {BinaryOp::k_mul, &Spelling::both, false, false},
    {BinaryOp::k_min, &Spelling::both, false, false},   {BinaryOp::k_and, &Spelling::both, false, false},
    {BinaryOp::k_xor, &Spelling::differ, false, false}, {BinaryOp::k_ne, &Spelling::differ, false, false},
    {BinaryOp::k_lt, &Spelling::both, true, false},     {BinaryOp::k_gt, &Spelling::both, false, true},
    {BinaryOp::k_le, &Spelling::either, true, false},   {BinaryOp::k_ge, &Spelling::either, false, true},
};

}  // namespace

const Spelling& spelling_of(TextLanguage language) { return language == TextLanguage::kC ? kC : kGlsl; }

std::string converted(const Spelling& spelling, const std::string& type, const std::string& x) {
  return spelling.converts_by_call ? type + "(" + x + ")" : "(" + type + ")" + x;
}

std::string infix_text(const std::string& a, const char* op, const std::string& b) {
  return "(" + a + " " + op + " " + b + ")";
}

const char* operator_text(BinaryOp op, DType dtype) {
  for (const Operator& known : kOperators)
    if (known.op == op && (is_wide_float(dtype) ? known.on_floats : known.on_integers && is_integer(dtype)))
      return known.text;
  return nullptr;
}

std::string bool_text(const Spelling& spelling, BinaryOp op, const std::string& a, const std::string& b) {
  if (op == BinaryOp::k_eq) return infix_text(a, "==", b);
  for (const BoolOperator& known : kBoolOperators) {
    if (known.op != op) continue;
    auto operand = [&](const std::string& x, bool is_negated) {
      return is_negated ? spelling.not_begin + x + spelling.not_end : x;
    };
    return infix_text(operand(a, known.not_a), spelling.*known.text, operand(b, known.not_b));
  }
  QUERNEL_UNREACHABLE("bool operation");
}

bool is_word(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
}

}  // namespace quernel::codegen
