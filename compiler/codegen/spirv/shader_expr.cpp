// Expressions of shaders.
#include <algorithm>
#include <cctype>
#include <functional>

#include "codegen/spirv/shader_printer.h"
#include "codegen/text/glsl_float.h"
#include "loop/evaluate_scalar.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;

namespace {

std::string int_text(int64_t number) {
  if (number == INT32_MIN) return "(-2147483647 - 1)";
  if (number == INT64_MIN) return "(-9223372036854775807l - 1l)";
  std::string digits = std::to_string(number);
  if (number < INT32_MIN || number > INT32_MAX) digits += "l";
  return number < 0 ? "(" + digits + ")" : digits;
}

}  // namespace

std::string glsl_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float";
    case DType::kF64:
      return "double";
    case DType::kBool:
      return "bool";
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
      return "int";
    case DType::kI64:
      return "int64_t";
    case DType::kU64:
      return "uint64_t";
    default:
      return "uint";
  }
}

bool ShaderPrinter::fits_32_bits(const loop::Expr& e) {
  if (e->type.dtype != DType::kI64) return false;
  if (e->kind == ExprKind::kVar) return narrow_vars_[e->var.get()];
  auto [it, fresh] = fits_memo_.try_emplace(e.get(), false);
  if (!fresh) return it->second;
  if (e->kind == ExprKind::kLoad && narrow_.contains(e->buffer.get()))
    return fits_memo_[e.get()] = e->args.size() < 3 || fits_32_bits(e->args[2]);
  if (e->kind == ExprKind::kCast) {
    DType from = e->args[0]->type.dtype;
    bool is_word = from != DType::kU32 && bit_width(from) <= 32 && !is_float(from);
    return fits_memo_[e.get()] = is_word || fits_32_bits(e->args[0]);
  }
  bool fits = e->kind != ExprKind::kLoad && e->kind != ExprKind::kSymbol && e->kind != ExprKind::kBitcast &&
              e->kind != ExprKind::kReduceLanes && e->kind != ExprKind::kUnary &&
              ranges_(e).within(INT32_MIN, INT32_MAX);
  for (const loop::Expr& arg : e->args)
    if (fits && arg->type.dtype == DType::kI64) fits = fits_32_bits(arg);
  fits_memo_[e.get()] = fits;
  return fits;
}

std::string ShaderPrinter::type_name(DType dtype) const { return glsl_type(dtype); }

std::string ShaderPrinter::variable_type(const loop::Expr& e) {
  std::string type = value_type(e);
  return (type == "float" || type == "double" ? "precise " : "") + type;
}

std::string ShaderPrinter::element_type(const loop::BufferNode& b) const {
  if (narrow_shared_.contains(&b)) return b.dtype == DType::kF16 ? "float16_t" : matrix_element();
  return narrow_.contains(&b) ? "int" : glsl_type(b.dtype);
}

std::string ShaderPrinter::variable(const loop::ExprNode& e, const Place& at) {
  if (e.type.lanes > 1 && at.lane != kLane) refuse("a variable of another lane");
  return vars_.at(e.var.get());
}

std::string ShaderPrinter::select(const loop::Expr& node, const Place& at) {
  const loop::ExprNode& e = *node;
  std::string type = value_type(node), condition = value(e.args[0], at);
  auto side = [&](size_t i) {
    std::string text = value(e.args[i], at);
    return e.type.dtype == DType::kI64 && value_type(e.args[i]) != type ? type + "(" + text + ")" : text;
  };
  std::string yes = side(1), no = side(2);
  return "(" + condition + " ? " + yes + " : " + no + ")";
}

std::string ShaderPrinter::ramp(const loop::Expr& node, const Place& at) {
  const loop::ExprNode& e = *node;
  std::string base = value(e.args[0], at);
  if (e.stride == 0) return base;
  std::string step = e.stride == 1 ? at.lane : at.lane + " * " + int_text(e.stride);
  if (value_type(node) != "int") {
    base = "int64_t(" + base + ")";
    step = e.stride == 1 ? at.lane : "int64_t(" + at.lane + ") * " + int_text(e.stride);
  }
  if (base == "0") return is_word(step) ? step : "(" + step + ")";
  return "(" + base + " + " + step + ")";
}

std::string ShaderPrinter::interleave(const loop::ExprNode&, const Place&) {
  refuse("lanes change places");
  return "0";
}

std::string ShaderPrinter::constant(const loop::ExprNode& e) {
  DType dtype = e.type.dtype;
  if (is_wide_float(dtype)) return glsl_float(e.bits, dtype == DType::kF32);
  if (dtype == DType::kBool) return e.bits != 0 ? "true" : "false";
  if (dtype == DType::kU64) return std::to_string(e.bits) + "ul";
  if (!is_signed_integer(dtype)) return std::to_string(e.bits) + "u";
  return int_text(loop::bits_to_int(dtype, e.bits));
}

std::string ShaderPrinter::symbol(int index) {
  std::string first = std::to_string(1 + kernel_.buffers.size() + 2 * static_cast<size_t>(index));
  return "int64_t(uint64_t(PARAMETER(" + first + ")) | uint64_t(PARAMETER(" + first + " + 1)) << 32u)";
}

// Addresses are computed modulo 2^32: sums, products and bits of low words depend on low words only.
std::string ShaderPrinter::low_word(const loop::Expr& e, const Place& at) {
  const Place& place = e->type.lanes == 1 ? scalar_place() : at;
  if (fits_32_bits(e)) return value(e, place);
  auto known = low_words_.find({e.get(), place.lane});
  if (known != low_words_.end()) return known->second;
  std::string text;
  const char* op = nullptr;
  switch (e->kind) {
    case ExprKind::kConst:
      return int_text(static_cast<int32_t>(static_cast<uint32_t>(e->bits)));
    case ExprKind::kSymbol:
      return "int(PARAMETER(" +
             std::to_string(1 + kernel_.buffers.size() + 2 * static_cast<size_t>(e->symbol)) + "))";
    case ExprKind::kBroadcast:
      return low_word(e->args[0], place);
    case ExprKind::kRamp: {
      auto stride = static_cast<int32_t>(static_cast<uint64_t>(e->stride));
      text = "(" + low_word(e->args[0], place) + " + " + place.lane + " * " + int_text(stride) + ")";
      break;
    }
    case ExprKind::kBinary:
      op = is_comparison(e->binary) ? nullptr : operator_text(e->binary, e->type.dtype);
      [[fallthrough]];
    default:
      // Definitions of the second operand come first.
      if (op) {
        std::string b = low_word(e->args[1], place), a = low_word(e->args[0], place);
        text = infix_text(a, op, b);
      } else {
        text = "int(" + value(e, place) + ")";
      }
  }
  if (text.size() > kLongestExpression) low_words_[{e.get(), place.lane}] = text = define("int", text, own_);
  return text;
}

// The place of an element.
std::string ShaderPrinter::element(const loop::BufferNode& b, const loop::Expr& index, const Place& at) {
  const std::string& name = buffers_.at(&b);
  if (b.scope == loop::Scope::kGlobal) return name + "(" + low_word(index, at) + ")";
  if (distribution_.placements.at(&b) != Placement::kDistributed)
    return name + "[" + low_word(index, at) + "]";
  int64_t n = 0;
  QUERNEL_ASSERT(is_aligned_vector(index, &n));
  if (at.lane != kLane) refuse("a register of another lane");
  return name + "[" + std::to_string(n) + "]";
}

// Memory is not touched where the predicate is false.
std::string ShaderPrinter::load(const loop::ExprNode& e, const Place& at) {
  const loop::BufferNode& b = *e.buffer;
  if (e.args.size() > 1 && b.size == 0) return value(e.args[2], at);
  if (std::string text = load_of_several(e, at); !text.empty()) return text;
  std::string x = element(b, e.args[0], at);
  if (b.scope == loop::Scope::kGlobal) {
    if (b.dtype == DType::kBool) x = "(uint(" + x + ") != 0u)";
    if (bit_width(b.dtype) < 32 && b.dtype != DType::kBool) x = glsl_type(b.dtype) + "(" + x + ")";
  }
  if (narrow_shared_.contains(&b))
    x = b.dtype == DType::kF16 ? "packFloat2x16(f16vec2(" + x + ", 0.0hf))"
                               : glsl_type(b.dtype) + "(" + x + ")";
  std::string guard;
  int64_t always = 0;
  if (e.args.size() > 1 && !(loop::as_const_int(e.args[1], &always) && always != 0))
    guard = value(e.args[1], at);
  std::string otherwise =
      e.args.size() > 1 ? value(e.args[2], at) : constant(*loop::const_bits({b.dtype, 1}, 0));
  bool is_distributed =
      b.scope != loop::Scope::kGlobal && distribution_.placements.at(&b) == Placement::kDistributed;
  if (e.type.lanes > 1 && e.type.lanes < distribution_.invocations && !is_distributed && at.lane == kLane)
    guard = "lane < " + std::to_string(e.type.lanes) + (guard.empty() ? "" : " && " + guard);
  if (guard.empty()) return x;
  return "(" + guard + " ? " + x + " : " + otherwise + ")";
}

// Functions take integers as unsigned ones, narrow ones with zeros above.
std::string ShaderPrinter::argument(DType dtype, const std::string& x) {
  switch (dtype) {
    case DType::kI64:
      return "uint64_t(int64_t(" + x + "))";
    case DType::kI32:
      return "uint(" + x + ")";
    case DType::kI16:
      return "(uint(" + x + ") & 65535u)";
    case DType::kI8:
      return "(uint(" + x + ") & 255u)";
    default:
      return x;
  }
}

std::string ShaderPrinter::result(DType dtype, const std::string& text) {
  if (!is_signed_integer(dtype)) return text;
  return bit_width(dtype) < 32 ? wrapped(dtype, "int(" + text + ")") : glsl_type(dtype) + "(" + text + ")";
}

std::string ShaderPrinter::compare(const loop::ExprNode& e, const std::string& a, const std::string& b) {
  DType dtype = e.args[0]->type.dtype;
  const char* op = operator_text(e.binary, dtype);
  bool widens = dtype == DType::kI64 && !(fits_32_bits(e.args[0]) && fits_32_bits(e.args[1]));
  return widens ? infix_text("int64_t(" + a + ")", op, "int64_t(" + b + ")") : infix_text(a, op, b);
}

// The value that a narrow type keeps of a result in 32 bits.
std::string ShaderPrinter::wrapped(DType dtype, const std::string& text) {
  int width = bit_width(dtype);
  if (width >= 32) return "(" + text + ")";
  if (is_signed_integer(dtype)) return "bitfieldExtract(" + text + ", 0, " + std::to_string(width) + ")";
  return "((" + text + ") & " + std::to_string((1u << width) - 1) + "u)";
}

// An operand of `e`, whose 64 bits it takes part in.
std::string ShaderPrinter::wide_operand(const loop::Expr& e, const loop::Expr& operand,
                                        const std::string& text) {
  bool widens = e->type.dtype == DType::kI64 && !fits_32_bits(e) && fits_32_bits(operand);
  return widens ? "int64_t(" + text + ")" : text;
}

// Definitions of the second operand come first.
std::string ShaderPrinter::integer_infix(const loop::Expr& e, const char* op, const Place& at) {
  std::string b = wide_operand(e, e->args[1], value(e->args[1], at));
  std::string a = wide_operand(e, e->args[0], value(e->args[0], at));
  return wrapped(e->type.dtype, a + " " + op + " " + b);
}

std::string ShaderPrinter::integer_extreme(const loop::Expr& e, const Place& at) {
  std::string a = wide_operand(e, e->args[0], atom(e->args[0], at));
  std::string b = wide_operand(e, e->args[1], atom(e->args[1], at));
  return "(" + a + (e->binary == BinaryOp::k_max ? " > " : " < ") + b + " ? " + a + " : " + b + ")";
}

std::string ShaderPrinter::integer_call(const loop::Expr& e, const std::string& text) {
  return fits_32_bits(e) ? "int(" + text + ")" : text;
}

// Returns a value of f16 as GLSL's type.
std::string ShaderPrinter::half(const loop::Expr& e, const Place& at) {
  if (e->kind == ExprKind::kLoad && e->args.size() == 1 && narrow_shared_.contains(e->buffer.get()) &&
      (e->type.lanes == 1 || e->type.lanes == distribution_.invocations))
    return element(*e->buffer, e->args[0], at);
  return "unpackFloat2x16(" + value(e, at) + ").x";
}

std::string ShaderPrinter::fused_narrow(const loop::ExprNode& e, const Place& at) {
  if (!target_.adds_f16 || e.type.dtype != DType::kF16) return "";
  const std::string a = half(e.args[0], at), b = half(e.args[1], at), c = half(e.args[2], at);
  return "packFloat2x16(f16vec2(fma(" + a + ", " + b + ", " + c + "), 0.0hf))";
}

std::string ShaderPrinter::fused(DType, const std::string& a, const std::string& b, const std::string& c) {
  return "fma(" + a + ", " + b + ", " + c + ")";
}

std::string ShaderPrinter::integer_mul_acc(const loop::ExprNode& e, const std::string& a,
                                           const std::string& b, const std::string& c) {
  std::string first = e.type.dtype == DType::kI64 ? "int64_t(" + a + ")" : a;
  return wrapped(e.type.dtype, first + " * " + b + " + " + c);
}

std::string ShaderPrinter::dot(const loop::ExprNode& e, const Place& at) {
  std::string a = value(e.args[0], at), b = value(e.args[1], at), c = value(e.args[2], at);
  bool a_signed = e.args[0]->type.dtype == DType::kI32, b_signed = e.args[1]->type.dtype == DType::kI32;
  if (e.type.dtype != DType::kI32 || !target_.has_dot(a_signed, b_signed)) return call(e, {a, b, c});
  if (b_signed && !a_signed) std::swap(a, b);  // the signed one comes first
  std::string operands = "(" + a + ", " + b + ")";
  if (a_signed && b_signed) return "(qnl_dot_i32_i32" + operands + " + " + c + ")";
  if (a_signed != b_signed) return "(qnl_dot_i32_u32" + operands + " + " + c + ")";
  return "(int(qnl_dot_u32_u32" + operands + ") + " + c + ")";
}

std::string ShaderPrinter::dot_2x2(const loop::ExprNode&, const Place&) {
  refuse("rows are multiplied by columns across lanes");
  return "0";
}

std::string ShaderPrinter::zero(DType dtype) const {
  if (is_float(dtype)) return "0.0";
  return dtype == DType::kU64 ? "0ul" : is_signed_integer(dtype) ? "0" : "0u";
}

std::string ShaderPrinter::integer_cast(const loop::Expr& e, const std::string& x) {
  DType from = e->args[0]->type.dtype, to = e->type.dtype;
  if (to == DType::kI64 && from != DType::kU32 && from != DType::kU64) return "int(" + x + ")";
  // Through the word of the same sign, whose bits another sign keeps.
  return wrapped(to, glsl_type(to) + "(" + (from == DType::kI64 ? "int64_t(" + x + ")" : x) + ")");
}

// Elements of one width to another: as bytes lie in memory, the first ones lowest.
std::string ShaderPrinter::bit_cast(const loop::ExprNode& e, const Place& at) {
  const loop::Expr& from = e.args[0];
  DType source = from->type.dtype, target = e.type.dtype;
  int from_bits = std::max(bit_width(source), 8), to_bits = std::max(bit_width(target), 8);
  auto as_bits = [&](const std::string& x) -> std::string {
    if (source == DType::kF32) return spelling_.bits_of_f32 + ("(" + x + ")");
    if (source == DType::kF64) return spelling_.bits_of_f64 + ("(" + x + ")");
    if (source == DType::kI64) return "uint64_t(int64_t(" + x + "))";
    if (source == DType::kU64) return x;
    if (!is_signed_integer(source)) return "uint(" + x + ")";
    return from_bits == 32 ? "uint(" + x + ")"
                           : "(uint(" + x + ") & " + std::to_string((1u << from_bits) - 1) + "u)";
  };
  auto of_bits = [&](const std::string& x) -> std::string {
    if (target == DType::kF32) return spelling_.f32_of_bits + ("(" + x + ")");
    if (target == DType::kF64) return spelling_.f64_of_bits + ("(" + x + ")");
    if (target == DType::kBool) return "(" + x + " != 0u)";
    if (!is_signed_integer(target)) return x;
    return to_bits < 32 ? wrapped(target, "int(" + x + ")") : glsl_type(target) + "(" + x + ")";
  };
  if (source == target) return value(from, at);
  if (from_bits == to_bits) return of_bits(as_bits(value(from, at)));
  std::string word = std::max(from_bits, to_bits) == 64 ? "uint64_t" : "uint";
  if (from_bits < to_bits) {
    int parts = to_bits / from_bits;
    std::string text;
    for (int i = 0; i < parts; ++i) {
      std::string which = std::to_string(i);
      if (e.type.lanes > 1) which = "(" + at.lane + " * " + std::to_string(parts) + " + " + which + ")";
      std::string part = word + "(" + as_bits(value(from, {which, -1, at.sink})) + ")";
      text += i == 0 ? part : " | (" + part + " << " + std::to_string(i * from_bits) + "u)";
    }
    return of_bits("(" + text + ")");
  }
  int parts = from_bits / to_bits;
  std::string which = from->type.lanes == 1 ? kLane : "(" + at.lane + " / " + std::to_string(parts) + ")";
  std::string whole = word + "(" + as_bits(value(from, {which, -1, at.sink})) + ")";
  std::string shifted = "uint(" + whole + " >> uint(" + at.lane + " % " + std::to_string(parts) + " * " +
                        std::to_string(to_bits) + "))";
  if (to_bits < 32) shifted = "(" + shifted + " & " + std::to_string((1u << to_bits) - 1) + "u)";
  return of_bits(shifted);
}

}  // namespace quernel::codegen
