#include <algorithm>
#include <charconv>

#include "loop/evaluate_scalar.h"
#include "loop/parser.h"
#include "loop/print.h"

namespace quernel::loop {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_suffix_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

struct InfixSign {
  std::string_view text;
  int precedence;
  BinaryOp op;
};
constexpr InfixSign kInfix[] = {
    {"==", 0, BinaryOp::k_eq}, {"!=", 0, BinaryOp::k_ne}, {"<=", 0, BinaryOp::k_le},
    {">=", 0, BinaryOp::k_ge}, {"<", 0, BinaryOp::k_lt},  {">", 0, BinaryOp::k_gt},
    {"+", 1, BinaryOp::k_add}, {"-", 1, BinaryOp::k_sub}, {"*", 2, BinaryOp::k_mul},
    {"/", 2, BinaryOp::k_div},
};

}  // namespace

Buffer Parser::buffer_reference() {
  if (!expect("%")) return nullptr;
  std::string name(take_name("a buffer name"));
  if (error_) return nullptr;
  auto found = buffers_.find(name);
  if (found != buffers_.end()) return found->second;
  fail("buffer '%" + name + "' is not declared");
  return nullptr;
}

Expr Parser::expression(int precedence) {
  if (precedence > 2) return primary();
  Expr left = expression(precedence + 1);
  while (left) {
    const InfixSign* sign = nullptr;
    for (const InfixSign& candidate : kInfix)
      if (!sign && candidate.precedence == precedence && peek(candidate.text)) sign = &candidate;
    if (!sign) break;
    accept(sign->text);
    Expr right = expression(precedence + 1);
    if (!right) return nullptr;
    left = infix(sign->op, std::move(left), std::move(right));
    if (precedence == 0) break;  // comparisons do not chain
  }
  return left;
}

Expr Parser::infix(BinaryOp op, Expr a, Expr b) {
  if (a->type != b->type)
    return fail_expr("expected operands of one type, found " + to_string(a->type) + " and " +
                     to_string(b->type));
  ExprNode node;
  node.kind = ExprKind::kBinary;
  node.binary = op;
  node.type = is_comparison(op) ? Type{DType::kBool, a->type.lanes} : a->type;
  node.args = {std::move(a), std::move(b)};
  return make(std::move(node));
}

Expr Parser::primary() {
  if (++depth_ > kMaxDepth) return fail_expr("expressions are nested too deeply");
  skip_space();
  Expr result;
  char c = position_ < text_.size() ? text_[position_] : '\0';
  if (accept("(")) {
    result = expression();
    if (result && !expect(")")) return nullptr;
  } else if (c == '%') {
    result = load_expression();
  } else if (c == '-' || is_digit(c)) {
    result = number();
  } else if (accept("$")) {
    std::string name(take_name("a symbol name"));
    auto found = symbols_.find(name);
    if (found == symbols_.end()) return fail_expr("symbol '$" + name + "' is not declared");
    result = symbol_ref(found->second);
  } else {
    std::string_view name = take_name("an expression");
    if (error_) return nullptr;
    if (name == "true" || name == "false") {
      result = const_int(DType::kBool, name == "true");
    } else if (accept("(")) {
      result = call(name);
    } else {
      auto found = vars_.find(std::string(name));
      if (found == vars_.end()) return fail_expr("variable '" + std::string(name) + "' is not declared");
      result = var_ref(found->second);
    }
  }
  --depth_;
  return result;
}

// -12, 3i32, 1.5f32, 1e+30f64: decimal digits, then the dtype unless it is i64.
Expr Parser::number() {
  size_t begin = position_, end = position_;
  auto digits = [&] {
    while (end < text_.size() && is_digit(text_[end])) ++end;
  };
  if (text_[end] == '-') ++end;
  digits();
  bool is_decimal = false;
  if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
    is_decimal = true;
    ++end;
    digits();
  }
  if (end + 1 < text_.size() && text_[end] == 'e' &&
      (is_digit(text_[end + 1]) || text_[end + 1] == '-' || text_[end + 1] == '+')) {
    is_decimal = true;
    end += 2;
    digits();
  }
  std::string_view value = text_.substr(begin, end - begin);
  position_ = end;
  DType dtype = DType::kI64;
  if (position_ < text_.size() && is_suffix_char(text_[position_])) {
    std::string_view suffix = peek_name();
    std::optional<DType> parsed = parse_dtype(suffix);
    if (!parsed || *parsed == DType::kBool)
      return fail_expr("expected a number's dtype such as f32, found '" + std::string(suffix) + "'");
    position_ += suffix.size();
    dtype = *parsed;
  }
  return number_value(value, dtype, is_decimal);
}

Expr Parser::number_value(std::string_view digits, DType dtype, bool is_decimal) {
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  auto out_of_range = [&] {
    return fail_expr("expected a number that " + std::string(quernel::to_string(dtype)) + " holds, found '" +
                     std::string(digits) + "'");
  };
  std::from_chars_result result{};
  if (is_float(dtype)) {
    uint64_t bits = 0;
    if (dtype == DType::kF32) {
      float value = 0;
      result = std::from_chars(begin, end, value);
      bits = double_to_bits(dtype, value);
    } else {
      double value = 0;
      result = std::from_chars(begin, end, value);
      bits = double_to_bits(dtype, value);
    }
    return result.ec != std::errc() || result.ptr != end ? out_of_range() : const_bits({dtype, 1}, bits);
  }
  if (is_decimal) return out_of_range();
  if (dtype == DType::kU64) {
    uint64_t value = 0;
    result = std::from_chars(begin, end, value);
    return result.ec != std::errc() || result.ptr != end ? out_of_range() : const_bits({dtype, 1}, value);
  }
  int64_t value = 0;
  result = std::from_chars(begin, end, value);
  if (result.ec != std::errc() || result.ptr != end) return out_of_range();
  uint64_t bits = int_to_bits(dtype, value);
  return bits_to_int(dtype, bits) != value ? out_of_range() : const_bits({dtype, 1}, bits);
}

Expr Parser::load_expression() {
  ExprNode node;
  node.kind = ExprKind::kLoad;
  node.buffer = buffer_reference();
  if (!node.buffer || !expect("[")) return nullptr;
  Expr index = expression();
  if (!index) return nullptr;
  node.type = {node.buffer->dtype, index->type.lanes};
  node.args = {std::move(index)};
  if (accept_word("if")) {
    Expr predicate = expression();
    if (!predicate) return nullptr;
    if (!accept_word("else")) {
      unexpected("'else'");
      return nullptr;
    }
    Expr otherwise = expression();
    if (!otherwise) return nullptr;
    node.args.push_back(std::move(predicate));
    node.args.push_back(std::move(otherwise));
  }
  return expect("]") ? make(std::move(node)) : nullptr;
}

bool Parser::arguments(std::vector<Expr>* args, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (i > 0 && !expect(",")) return false;
    Expr arg = expression();
    if (!arg) return false;
    args->push_back(std::move(arg));
  }
  return true;
}

bool Parser::lanes(int* lanes) {
  int64_t value = 0;
  if (!expect(",") || !integer(&value, "a number of lanes")) return false;
  if (value < 2 || value > kMaxLanes)
    return fail("expected a number of lanes from 2, found " + std::to_string(value));
  *lanes = static_cast<int>(value);
  return true;
}

Expr Parser::call(std::string_view name) {
  Expr result;
  if (name == "splat" || name == "broadcast" || name == "ramp")
    result = lane_call(name);
  else if (name == "cast" || name == "bitcast" || name == "reduce_lanes" || parse_dtype(name))
    result = typed_call(name);
  else
    result = operation(name);
  return result && expect(")") ? result : nullptr;
}

Expr Parser::lane_call(std::string_view name) {
  ExprNode node;
  std::vector<Expr> args;
  if (!arguments(&args, 1)) return nullptr;
  if (args[0]->type.lanes != 1) return fail_expr("expected a scalar, found " + to_string(args[0]->type));
  node.kind = name == "ramp" ? ExprKind::kRamp : name == "splat" ? ExprKind::kConst : ExprKind::kBroadcast;
  if (name == "ramp" && (!expect(",") || !integer(&node.stride, "a stride"))) return nullptr;
  if (!lanes(&node.type.lanes)) return nullptr;
  node.type.dtype = args[0]->type.dtype;
  if (name == "splat") {
    if (args[0]->kind != ExprKind::kConst) return fail_expr("expected a constant to splat");
    return const_bits(node.type, args[0]->bits);
  }
  node.args = std::move(args);
  return make(std::move(node));
}

// The calls whose first argument is a type or an operation: cast, bitcast, reduce_lanes; and constants by
// their bits.
Expr Parser::typed_call(std::string_view name) {
  ExprNode node;
  if (std::optional<DType> dtype = parse_dtype(name)) {
    if (!expect("0x")) return nullptr;
    const char* begin = text_.data() + position_;
    auto [end, status] = std::from_chars(begin, text_.data() + text_.size(), node.bits, 16);
    int width = bit_width(*dtype);
    if (status != std::errc() || (width < 64 && node.bits >> width != 0))
      return fail_expr("expected " + std::to_string(width) + " bits in hexadecimal, found " + found());
    position_ += static_cast<size_t>(end - begin);
    return const_bits({*dtype, 1}, node.bits);
  }
  if (name == "reduce_lanes") {
    std::string_view op_name = take_name("an operation");
    std::optional<BinaryOp> op = parse_binary_op(op_name);
    if (!op) return fail_expr("expected an operation, found '" + std::string(op_name) + "'");
    node.kind = ExprKind::kReduceLanes;
    node.binary = *op;
  } else {
    node.kind = name == "cast" ? ExprKind::kCast : ExprKind::kBitcast;
    if (!type(&node.type)) return nullptr;
  }
  if (!expect(",") || !arguments(&node.args, 1)) return nullptr;
  const Type& from = node.args[0]->type;
  if (node.kind == ExprKind::kCast && node.type.lanes != 1)
    return fail_expr("expected the dtype to cast to, found " + to_string(node.type));
  if (node.kind == ExprKind::kCast) node.type.lanes = from.lanes;
  if (node.kind == ExprKind::kReduceLanes) node.type = from.with_lanes(1);
  return make(std::move(node));
}

Expr Parser::operation(std::string_view name) {
  ExprNode node;
  std::optional<UnaryOp> unary_op = parse_unary_op(name);
  std::optional<BinaryOp> binary_op = parse_binary_op(name);
  bool ternary = name == "mulacc" || name == "select" || name == "dot" || name == "dot_2x2";
  if (name == "interleave_lower" || name == "interleave_upper") {
    if (!arguments(&node.args, 2)) return nullptr;
    node.kind = ExprKind::kInterleave;
    node.type = node.args[0]->type;
    node.stride = name == "interleave_upper";
    return make(std::move(node));
  }
  if (!unary_op && !binary_op && !ternary)
    return fail_expr("operation '" + std::string(name) + "' is not known");
  if (!arguments(&node.args, unary_op ? 1 : binary_op ? 2 : 3)) return nullptr;
  if (binary_op) return infix(*binary_op, node.args[0], node.args[1]);
  node.type = node.args.back()->type;
  if (unary_op) {
    node.kind = ExprKind::kUnary;
    node.unary = *unary_op;
    if (is_predicate(*unary_op)) node.type.dtype = DType::kBool;
  } else {
    node.kind = name == "mulacc"    ? ExprKind::kMulAcc
                : name == "dot"     ? ExprKind::kDot
                : name == "dot_2x2" ? ExprKind::kDot2x2
                                    : ExprKind::kSelect;
  }
  return make(std::move(node));
}

}  // namespace quernel::loop
