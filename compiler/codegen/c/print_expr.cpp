// Expressions: one lane at a time. An expression that is used more than once, or that is long, gets a name in
// the sink of its lane.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "codegen/c/kernel_printer.h"
#include "codegen/c/program_printer.h"
#include "codegen/c/upper_half.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;

namespace {

std::string sized(const char* prefix, int width) { return prefix + std::to_string(width) + "_t"; }

std::string unsigned_type(DType dtype) { return sized("uint", std::max(bit_width(dtype), 8)); }

std::string float_constant(double value, bool is_f32) {
  char text[48];
  const char* suffix = is_f32 ? "f" : "";
  if (value == std::floor(value) && std::fabs(value) < 1e6)
    std::snprintf(text, sizeof text, "%.1f%s", value, suffix);
  else
    std::snprintf(text, sizeof text, "%a%s", value, suffix);
  return std::signbit(value) ? "(" + std::string(text) + ")" : text;
}

}  // namespace

std::string KernelPrinter::type_name(DType dtype) const {
  return dtype == DType::kBool ? "int" : c_memory_type(dtype);
}

bool KernelPrinter::fits_32_bits(const loop::Expr& e) {
  if (e->type.dtype != DType::kI64) return false;
  auto [it, fresh] = fits_memo_.try_emplace(e.get(), false);
  if (!fresh) return it->second;
  bool fits = ranges_(e).within(INT32_MIN, INT32_MAX);
  for (const loop::Expr& arg : e->args)
    if (fits && arg->type.dtype == DType::kI64) fits = fits_32_bits(arg);
  fits_memo_[e.get()] = fits;
  return fits;
}

std::string KernelPrinter::scalar(const loop::Expr& e) {
  QUERNEL_ASSERT(e->type.lanes == 1);
  return value(e, scalar_place());
}

std::string KernelPrinter::variable(const loop::ExprNode& e, const Place& at) {
  auto alias = aliases_.find(e.var.get());
  if (alias != aliases_.end()) return value(alias->second, at);
  const std::string& name = vars_.at(e.var.get());
  if (vector_vars_.contains(e.var.get())) return lane_of(e.type, name, at);
  return e.type.lanes == 1 ? name : name + "[" + at.lane + "]";
}

// Definitions of the last operand come first, here and in a load.
std::string KernelPrinter::select(const loop::Expr& e, const Place& at) {
  std::string no = value(e->args[2], at), yes = value(e->args[1], at), condition = value(e->args[0], at);
  return "(" + condition + " ? " + yes + " : " + no + ")";
}

// The name of four variables, less their numbers, in which the bytes of a word are; null: the word is whole.
const std::string* KernelPrinter::bytes_of(const loop::Expr& word) const {
  if (word->kind != ExprKind::kVar) return nullptr;
  auto found = words_as_bytes_.find(word->var.get());
  return found == words_as_bytes_.end() ? nullptr : &found->second;
}

std::string KernelPrinter::byte_of(const loop::Expr& word, const std::string& text, int i) const {
  if (const std::string* name = bytes_of(word)) return "(uint32_t)" + *name + std::to_string(i);
  const char* sign = word->type.dtype == DType::kI32 ? "i(" : "u(";
  return std::string("qnl_byte_") + sign + text + ", " + std::to_string(i) + ")";
}

// A word that dot products alone read is loaded as bytes where the processor has no products of 16-bit pairs.
bool KernelPrinter::let_bytes(const loop::StmtNode& s) {
  if (!has_few_registers_ || has_dot_pairs_ || s.value->type.lanes != 1 ||
      references_[s.var.get()] != dot_references_[s.var.get()])
    return false;
  const loop::ExprNode* x = s.value.get();
  while (x->kind == ExprKind::kBitcast && x->args[0]->type.lanes == 1) x = x->args[0].get();
  if (x->kind != ExprKind::kBitcast || word_of_bytes(*x, scalar_place()).empty()) return false;
  bool is_signed = s.value->type.dtype == DType::kI32;
  std::string name = words_as_bytes_[s.var.get()] = declare(s.var->name) + "_byte";
  vars_[s.var.get()] = name + "0";
  for (int i = 0; i < 4; ++i) {
    std::string element = value(x->args[0], {std::to_string(i), i, &own_});
    line("const int32_t " + name + std::to_string(i) + " = " + (is_signed ? "(int8_t)" : "(uint8_t)") +
         element + ";");
  }
  return true;
}

namespace {

std::string name_of_dot(const loop::ExprNode& e) {
  auto sign = [](const loop::Expr& x) { return x->type.dtype == DType::kI32 ? "i" : "u"; };
  return std::string("qnl_dot_") + sign(e.args[0]) + sign(e.args[1]);
}

}  // namespace

std::string KernelPrinter::dot(const loop::ExprNode& e, const Place& at) {
  std::string a = value(e.args[0], at), b = value(e.args[1], at), sum = value(e.args[2], at);
  if (e.type.dtype != DType::kI32) return call(e, {a, b, sum});
  if (bytes_of(e.args[0]) || bytes_of(e.args[1])) {
    std::string text = "(uint32_t)" + sum;
    for (int i = 0; i < 4; ++i) text += " + " + byte_of(e.args[0], a, i) + " * " + byte_of(e.args[1], b, i);
    return "(int32_t)(" + text + ")";
  }
  return name_of_dot(e) + "(" + a + ", " + b + ", " + sum + ")";
}

std::string KernelPrinter::dot_2x2(const loop::ExprNode& e, const Place& at) {
  // A word of a row or of a column: lane 2 * (lane / 2) + word, or 2 * (lane % 2) + word.
  auto place = [&](const char* op, int word) {
    const int of_number = *op == '/' ? at.number / 2 : at.number % 2, n = 2 * of_number + word;
    if (at.number >= 0) return Place{std::to_string(n), n, at.sink};
    return Place{"(" + at.lane + " " + op + " 2 * 2 + " + std::to_string(word) + ")", -1, at.sink};
  };
  std::string text = value(e.args[2], at);
  for (int word : {0, 1})
    text = name_of_dot(e) + "(" + value(e.args[0], place("/", word)) + ", " +
           value(e.args[1], place("%", word)) + ", " + text + ")";
  return text;
}

// Whether the integer is in [0, limit), as far as is known.
bool KernelPrinter::is_below(const loop::Expr& e, int64_t limit) {
  int64_t number = 0;
  if (loop::as_const_int(e, &number)) return number >= 0 && number < limit;
  if (e->kind == ExprKind::kLoad && e->args.size() == 1)
    return e->buffer->below > 0 && e->buffer->below <= limit;
  if (e->kind == ExprKind::kVar) {
    auto found = values_.find(e->var.get());
    return found != values_.end() && is_below(found->second, limit);
  }
  bool passes = e->kind == ExprKind::kBroadcast ||
                (e->kind == ExprKind::kCast && is_integer(e->args[0]->type.dtype) && limit <= 128);
  return passes && is_below(e->args[0], limit);
}

// Shifts by less than the width are operators. Upper halves of products are functions, where not every processor
// has an instruction.
std::string KernelPrinter::integer_form(const loop::Expr& e, const Place& at) {
  if (e->kind == ExprKind::kCast) {
    std::optional<UpperHalf> half = has_few_registers_ && e->type.lanes == 1 ? upper_half(*e) : std::nullopt;
    if (!half) return "";
    made_.insert(made_.end(), {half->a, half->b});  // names of nodes outlive this
    std::string a = value(half->a, at), b = value(half->b, at);
    std::string upper = "qnl_mulh(" + a + ", " + b + ")";
    return half->shift == 0 ? upper : infix_text(upper, ">>", std::to_string(half->shift));
  }
  bool left = e->binary == BinaryOp::k_shl, right = e->binary == BinaryOp::k_shr;
  int width = bit_width(e->type.dtype);
  if (!(left || right) || width < 32 || !is_below(e->args[1], width)) return "";
  std::string a = value(e->args[0], at), b = value(e->args[1], at);
  if (right) return infix_text(a, ">>", b);
  if (!is_signed_integer(e->type.dtype)) return infix_text(a, "<<", b);
  std::string bits = "(" + unsigned_type(e->type.dtype) + ")" + a;
  return "(" + type_name(e->type.dtype) + ")" + infix_text(bits, "<<", b);
}

std::string KernelPrinter::constant(const loop::ExprNode& e) {
  DType dtype = e.type.dtype;
  if (is_wide_float(dtype)) {
    bool is_f32 = dtype == DType::kF32;
    double number = loop::bits_to_double(dtype, e.bits);
    if (std::isfinite(number)) return float_constant(number, is_f32);
    return is_f32 ? "qnl_f32_of(" + std::to_string(e.bits) + "u)"
                  : "qnl_f64_of(UINT64_C(" + std::to_string(e.bits) + "))";
  }
  if (dtype == DType::kU32) return std::to_string(e.bits) + "u";
  if (dtype == DType::kU64) return "UINT64_C(" + std::to_string(e.bits) + ")";
  if (!is_signed_integer(dtype)) return std::to_string(e.bits);
  int64_t number = loop::bits_to_int(dtype, e.bits);
  if (number == INT64_MIN) return "INT64_MIN";
  if (number == INT32_MIN) return "INT32_MIN";
  std::string digits = std::to_string(number);
  if (number < INT32_MIN || number > INT32_MAX) digits = "INT64_C(" + digits + ")";
  return number < 0 ? "(" + digits + ")" : digits;
}

// Memory is not touched where the predicate is false.
std::string KernelPrinter::load(const loop::ExprNode& e, const Place& at) {
  const loop::BufferNode& b = *e.buffer;
  if (vector_buffers_.contains(&b)) {
    int64_t first = 0;
    loop::as_const_int(e.args[0]->args[0], &first);
    return lane_of(e.type, buffer_name(b) + "[" + std::to_string(first / e.type.lanes) + "]", at);
  }
  if (e.args.size() > 1 && b.size == 0) return "((void)" + buffer_name(b) + ", " + value(e.args[2], at) + ")";
  std::string element = buffer_name(b) + "[" + value(e.args[0], at) + "]";
  if (b.dtype == DType::kBool) element = "(" + element + " != 0)";
  if (e.args.size() == 1) return element;
  int64_t always = 0;
  if (loop::as_const_int(e.args[1], &always) && always != 0) return element;
  std::string otherwise = value(e.args[2], at), guard = value(e.args[1], at);
  return "(" + guard + " ? " + element + " : " + otherwise + ")";
}

std::string KernelPrinter::result(DType dtype, const std::string& text) {
  return is_signed_integer(dtype) ? converted(spelling_, type_name(dtype), text) : text;
}

std::string KernelPrinter::complement(DType dtype, const std::string& x) {
  return "(" + type_name(dtype) + ")~" + x;
}

// C compilers warn of comparisons that a type's range decides.
std::string KernelPrinter::compare(const loop::ExprNode& e, const std::string& a, const std::string& b) {
  DType dtype = e.args[0]->type.dtype;
  std::string plain = infix_text(a, operator_text(e.binary, dtype), b);
  if (!is_integer(dtype) || dtype == DType::kI64) return plain;
  int width = bit_width(dtype);
  uint64_t smallest = is_signed_integer(dtype) ? uint64_t{1} << (width - 1) : 0;
  uint64_t largest = smallest - 1;
  if (width < 64) largest &= (uint64_t{1} << width) - 1;
  auto is = [](const loop::ExprNode* number, uint64_t bits) { return number && number->bits == bits; };
  const loop::ExprNode *x = as_constant(e.args[0]), *y = as_constant(e.args[1]);
  bool below = e.binary == BinaryOp::k_lt || e.binary == BinaryOp::k_ge;
  bool above = e.binary == BinaryOp::k_gt || e.binary == BinaryOp::k_le;
  // y < smallest and the like never hold, their opposites always do.
  if ((below && (is(y, smallest) || is(x, largest))) || (above && (is(y, largest) || is(x, smallest))))
    return "((void)" + a + ", (void)" + b + ", " +
           (e.binary == BinaryOp::k_ge || e.binary == BinaryOp::k_le ? "1)" : "0)");
  return plain;
}

// Arithmetic that wraps, in a type in which C's does, too.
std::string KernelPrinter::wrapped(DType dtype, const char* op, const std::string& a, const std::string& b) {
  if (dtype == DType::kU32 || dtype == DType::kU64) return infix_text(a, op, b);
  std::string word = bit_width(dtype) == 64 ? "(uint64_t)" : "(uint32_t)";
  return "(" + type_name(dtype) + ")" + infix_text(word + a, op, word + b);
}

std::string KernelPrinter::integer_infix(const loop::Expr& e, const char* op, const Place& at) {
  if (std::string sum = sum_of_lanes(*e); !sum.empty()) return sum;
  std::string a = value(e->args[0], at), b = value(e->args[1], at);
  bool wraps = e->binary == BinaryOp::k_add || e->binary == BinaryOp::k_sub || e->binary == BinaryOp::k_mul;
  if (!wraps || fits_32_bits(e)) return infix_text(a, op, b);
  // Products of widened words do not wrap.
  auto is_widened = [](const loop::Expr& x) {
    return x->kind == ExprKind::kCast && is_signed_integer(x->args[0]->type.dtype) &&
           bit_width(x->args[0]->type.dtype) <= 32;
  };
  if (e->type.dtype == DType::kI64 && e->binary == BinaryOp::k_mul && is_widened(e->args[0]) &&
      is_widened(e->args[1]))
    return infix_text("(int64_t)" + a, op, b);
  if (e->type.dtype != DType::kI64 || !ranges_(e).finite()) return wrapped(e->type.dtype, op, a, b);
  return infix_text("(int64_t)" + a, op, b);
}

// All that the operands need is defined before the operands themselves.
std::string KernelPrinter::integer_extreme(const loop::Expr& e, const Place& at) {
  if (std::string text = saturation(*e, at); !text.empty()) return text;
  value(e->args[0], at);
  value(e->args[1], at);
  std::string a = atom(e->args[0], at), b = atom(e->args[1], at);
  loop::ExprNode comparison = *e;
  comparison.binary = e->binary == BinaryOp::k_max ? BinaryOp::k_gt : BinaryOp::k_lt;
  return "(" + compare(comparison, a, b) + " ? " + a + " : " + b + ")";
}

// The range of a narrower integer: an instruction of some processors. Empty if `e` is something else.
std::string KernelPrinter::saturation(const loop::ExprNode& e, const Place& at) {
  if (e.binary != BinaryOp::k_min || e.type.dtype != DType::kI32) return "";
  loop::Expr inner = e.args[0];
  if (inner->kind == ExprKind::kVar) {
    auto alias = aliases_.find(inner->var.get());
    if (alias == aliases_.end()) return "";
    inner = alias->second;
  }
  if (inner->kind != ExprKind::kBinary || inner->binary != BinaryOp::k_max) return "";
  int64_t low = 0, high = 0;
  if (!loop::as_const_int(inner->args[1], &low) || !loop::as_const_int(e.args[1], &high)) return "";
  for (int bits = 1; bits < 31; ++bits) {
    int64_t end = int64_t{1} << bits;
    if (high != end - 1 || (low != 0 && low != -end)) continue;
    return (low == 0 ? "qnl_usat(" : "qnl_ssat(") + value(inner->args[0], at) + ", " +
           std::to_string(low == 0 ? bits : bits + 1) + ")";
  }
  return "";
}

std::string KernelPrinter::fused(DType dtype, const std::string& a, const std::string& b,
                                 const std::string& c) {
  if (!(dtype == DType::kF32 ? f32_fused_ : f64_fused_)) return "(" + a + " * " + b + " + " + c + ")";
  return std::string(dtype == DType::kF32 ? "qnl_fma_f32(" : "qnl_fma_f64(") + a + ", " + b + ", " + c + ")";
}

std::string KernelPrinter::integer_mul_acc(const loop::ExprNode& e, const std::string& a,
                                           const std::string& b, const std::string& c) {
  return wrapped(e.type.dtype, "+", wrapped(e.type.dtype, "*", a, b), c);
}

std::string KernelPrinter::integer_cast(const loop::Expr& e, const std::string& x) {
  return converted(spelling_, value_type(e), x);
}

KernelPrinter::Place KernelPrinter::scaled(const Place& at, int factor, int offset) {
  if (at.lane.empty()) return {std::to_string(offset), offset, at.sink};
  if (int n = at.number * factor + offset; at.number >= 0) return {std::to_string(n), n, at.sink};
  return {"(" + std::to_string(factor) + " * " + at.lane + " + " + std::to_string(offset) + ")", -1, at.sink};
}

KernelPrinter::Place KernelPrinter::divided(const Place& at, int divisor, int offset) {
  if (int n = at.number / divisor + offset; at.number >= 0) return {std::to_string(n), n, at.sink};
  return {"(" + at.lane + " / " + std::to_string(divisor) + " + " + std::to_string(offset) + ")", -1,
          at.sink};
}

// Four bytes that follow each other in memory; empty if `e` is something else.
std::string KernelPrinter::word_of_bytes(const loop::ExprNode& e, const Place& at) {
  constexpr int kParts = 4;
  const loop::ExprNode& from = *e.args[0];
  if (from.kind != ExprKind::kLoad || from.args.size() != 1 || bit_width(from.type.dtype) != 8 ||
      bit_width(e.type.dtype) != 8 * kParts || is_float(e.type.dtype))
    return "";
  const loop::ExprNode& index = *from.args[0];
  if (index.kind != ExprKind::kRamp || index.stride != 1) return "";
  return "qnl_word(" + buffer_name(*from.buffer) + " + " + value(from.args[0], scaled(at, kParts, 0)) + ")";
}

// Wider elements are put together, and taken apart, as on a little-endian machine, whatever this one is.
std::string KernelPrinter::bit_cast(const loop::ExprNode& e, const Place& at) {
  const loop::Expr& from = e.args[0];
  DType source = from->type.dtype, target = e.type.dtype;
  auto as_bits = [&](const std::string& x) {
    if (source == DType::kF32) return spelling_.bits_of_f32 + ("(" + x + ")");
    if (source == DType::kF64) return spelling_.bits_of_f64 + ("(" + x + ")");
    return is_signed_integer(source) ? "(" + unsigned_type(source) + ")" + x : x;
  };
  auto of_bits = [&](const std::string& x) {
    if (target == DType::kF32) return spelling_.f32_of_bits + ("(" + x + ")");
    if (target == DType::kF64) return spelling_.f64_of_bits + ("(" + x + ")");
    if (target == DType::kBool) return "(" + x + " != 0)";
    return "(" + type_name(target) + ")" + x;
  };
  int from_bits = std::max(bit_width(source), 8), to_bits = std::max(bit_width(target), 8);
  if (from_bits == to_bits) {
    std::string x = value(from, at);
    return source == target ? x : of_bits(as_bits(x));
  }
  std::string word = sized("uint", std::max(std::max(from_bits, to_bits), 32));
  if (std::string whole = word_of_bytes(e, at); !whole.empty()) return of_bits(whole);
  if (from_bits < to_bits) {
    int parts = to_bits / from_bits;
    std::string text;
    for (int i = 0; i < parts; ++i) {
      std::string part = "(" + word + ")" + as_bits(value(from, scaled(at, parts, i)));
      text += i == 0 ? part : " | " + part + " << " + std::to_string(i * from_bits);
    }
    return of_bits("(" + text + ")");
  }
  int parts = from_bits / to_bits;
  std::string whole =
      "(" + word + ")" + as_bits(value(from, from->type.lanes == 1 ? at : divided(at, parts, 0)));
  std::string shift = at.number >= 0 ? std::to_string(at.number % parts * to_bits)
                                     : "(" + std::to_string(to_bits) + " * (" + at.lane + " % " +
                                           std::to_string(parts) + "))";
  return of_bits("(" + unsigned_type(target) + ")(" + whole + " >> " + shift + ")");
}

std::string KernelPrinter::ramp(const loop::Expr& node, const Place& at) {
  const loop::ExprNode& e = *node;
  std::string base = scalar(e.args[0]);
  if (!is_word(base) && base.size() > 40) base = atom(e.args[0], scalar_place());
  int64_t number = 0;
  bool is_number = loop::as_const_int(e.args[0], &number);
  if (at.number >= 0) {
    int64_t offset = at.number * e.stride;
    if (is_number) return std::to_string(number + offset);
    if (offset == 0) return base;
    return "(" + base + (offset < 0 ? " - " : " + ") + std::to_string(std::abs(offset)) + ")";
  }
  std::string step = e.stride == 1 ? at.lane : at.lane + " * " + std::to_string(e.stride);
  if (is_number && number == 0) return e.stride == 1 ? step : "(" + step + ")";
  return "(" + base + " + " + step + ")";
}

std::string KernelPrinter::interleave(const loop::ExprNode& e, const Place& at) {
  Place source = divided(at, 2, e.stride == 0 ? 0 : e.type.lanes / 2);
  if (at.number >= 0) return value(e.args[static_cast<size_t>(at.number % 2)], source);
  std::string even = value(e.args[0], source), odd = value(e.args[1], source);
  return "(" + at.lane + " % 2 ? " + odd + " : " + even + ")";
}

// Integers are added in a loop. Else halves are folded pairwise; of an odd count the middle lane waits for the next round.
std::string KernelPrinter::reduce_lanes(const loop::ExprNode& e) {
  DType dtype = e.args[0]->type.dtype;
  if (e.binary == BinaryOp::k_add && is_integer(dtype) && !mask_ && !touches_registers(e.args[0])) {
    std::string sum = "r" + std::to_string(next_name_++);
    line(type_name(dtype) + " " + sum + " = 0;");
    each_lane(e.args[0]->type.lanes, false, [&](const Place& at) {
      std::string x = value(e.args[0], at);
      *at.sink->out += margin(at.sink->indent) + sum + " = " + fold(e, sum, x) + ";\n";
    });
    return sum;
  }
  std::string lanes = materialize(e.args[0], "r");
  for (int n = e.args[0]->type.lanes; n > 1;) {
    int half = n / 2, kept = n - half;
    for (int i = 0; i < half; ++i) {
      std::string a = lanes + "[" + std::to_string(i) + "]", b = lanes + "[" + std::to_string(kept + i) + "]";
      line(a + " = " + fold(e, a, b) + ";");
    }
    n = kept;
  }
  return lanes + "[0]";
}

std::string KernelPrinter::fold(const loop::ExprNode& e, const std::string& a, const std::string& b) {
  DType dtype = e.args[0]->type.dtype;
  if (dtype == DType::kBool) return "(uint8_t)" + bool_text(spelling_, e.binary, a, b);
  const char* op = operator_text(e.binary, dtype);
  bool wraps = is_integer(dtype) && (e.binary == BinaryOp::k_add || e.binary == BinaryOp::k_mul);
  if (op) return wraps ? wrapped(dtype, op, a, b) : a + " " + op + " " + b;
  if (is_integer(dtype)) return a + (e.binary == BinaryOp::k_max ? " > " : " < ") + b + " ? " + a + " : " + b;
  return call(e.binary, dtype, a, b);
}

}  // namespace quernel::codegen
