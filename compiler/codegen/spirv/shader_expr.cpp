// Expressions of shaders.
#include <algorithm>
#include <cctype>
#include <functional>

#include "codegen/llvm/glsl_float.h"
#include "codegen/spirv/shader_printer.h"
#include "loop/evaluate_scalar.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;

namespace {

constexpr size_t kLongestExpression = 96;  // characters; what is longer gets a name

bool is_word(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  });
}

// A constant, also as all lanes of a vector.
const loop::ExprNode* as_constant(const loop::Expr& e) {
  if (e->kind == ExprKind::kConst) return e.get();
  return e->kind == ExprKind::kBroadcast ? as_constant(e->args[0]) : nullptr;
}

bool is_wide_float(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

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

std::string ShaderPrinter::value_type(const loop::Expr& e) {
  return fits_32_bits(e) ? "int" : glsl_type(e->type.dtype);
}

std::string ShaderPrinter::element_type(const loop::BufferNode& b) const {
  return narrow_.contains(&b) ? "int" : glsl_type(b.dtype);
}

std::string ShaderPrinter::define(const std::string& type, const std::string& text) {
  std::string name = "t" + std::to_string(next_name_++);
  line(type + " " + name + " = " + text + ";");
  return name;
}

std::string ShaderPrinter::value(const loop::Expr& e, const std::string& lane) {
  // Scalars are the same for all lanes.
  const std::string& which = e->type.lanes == 1 ? std::string(kLane) : lane;
  auto known = names_.find({e.get(), which});
  if (known != names_.end()) return known->second;
  auto uses = uses_.find(e.get());
  if (uses != uses_.end() && uses->second > 1) return atom(e, which);
  std::string text = print_expr(e, which);
  if (!is_word(text) && text.size() > kLongestExpression) text = name(e, which, text);
  return text;
}

std::string ShaderPrinter::name(const loop::Expr& e, const std::string& lane, const std::string& text) {
  std::string type = value_type(e);
  return names_[{e.get(), lane}] =
             define((type == "float" || type == "double" ? "precise " : "") + type, text);
}

std::string ShaderPrinter::atom(const loop::Expr& e, const std::string& lane) {
  auto known = names_.find({e.get(), lane});
  if (known != names_.end()) return known->second;
  std::string text = print_expr(e, lane);
  bool is_name = is_word(text) || e->kind == ExprKind::kConst;
  return is_name ? text : name(e, lane, text);
}

std::string ShaderPrinter::print_expr(const loop::Expr& node, const std::string& lane) {
  const loop::ExprNode& e = *node;
  auto arg = [&](size_t i) { return value(e.args[i], lane); };
  switch (e.kind) {
    case ExprKind::kConst:
      return constant(e);
    case ExprKind::kVar:
      if (e.type.lanes > 1 && lane != kLane) refuse("a variable of another lane");
      return vars_.at(e.var.get());
    case ExprKind::kSymbol:
      return symbol(e.symbol);
    case ExprKind::kLoad:
      return load(e, lane);
    case ExprKind::kUnary:
      return unary(e, lane);
    case ExprKind::kBinary:
      return binary(node, lane);
    case ExprKind::kMulAcc:
      return mul_acc(e, lane);
    case ExprKind::kSelect: {
      std::string type = value_type(node);
      auto side = [&](size_t i) {
        std::string text = arg(i);
        return e.type.dtype == DType::kI64 && value_type(e.args[i]) != type ? type + "(" + text + ")" : text;
      };
      std::string condition = arg(0), yes = side(1), no = side(2);
      return "(" + condition + " ? " + yes + " : " + no + ")";
    }
    case ExprKind::kCast:
      return cast(e, lane);
    case ExprKind::kBitcast:
      return bit_cast(e, lane);
    case ExprKind::kRamp: {
      std::string base = arg(0);
      if (e.stride == 0) return base;
      std::string step = e.stride == 1 ? lane : lane + " * " + int_text(e.stride);
      if (value_type(node) != "int") {
        base = "int64_t(" + base + ")";
        step = e.stride == 1 ? lane : "int64_t(" + lane + ") * " + int_text(e.stride);
      }
      if (base == "0") return is_word(step) ? step : "(" + step + ")";
      return "(" + base + " + " + step + ")";
    }
    case ExprKind::kBroadcast:
      return arg(0);
    case ExprKind::kReduceLanes:
      return reduce_lanes(e);
    case ExprKind::kInterleave:
      refuse("lanes change places");
      return "0";
    case ExprKind::kDot:
      return dot(e, lane);
  }
  QUERNEL_UNREACHABLE("expression kind");
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
std::string ShaderPrinter::low_word(const loop::Expr& e, const std::string& lane) {
  const std::string& which = e->type.lanes == 1 ? std::string(kLane) : lane;
  if (fits_32_bits(e)) return value(e, which);
  auto known = low_words_.find({e.get(), which});
  if (known != low_words_.end()) return known->second;
  std::string text;
  switch (e->kind) {
    case ExprKind::kConst:
      return int_text(static_cast<int32_t>(static_cast<uint32_t>(e->bits)));
    case ExprKind::kSymbol:
      return "int(PARAMETER(" +
             std::to_string(1 + kernel_.buffers.size() + 2 * static_cast<size_t>(e->symbol)) + "))";
    case ExprKind::kBroadcast:
      return low_word(e->args[0], which);
    case ExprKind::kRamp: {
      auto stride = static_cast<int32_t>(static_cast<uint64_t>(e->stride));
      text = "(" + low_word(e->args[0], which) + " + " + which + " * " + int_text(stride) + ")";
      break;
    }
    case ExprKind::kBinary: {
      const char* op = e->binary == BinaryOp::k_add   ? " + "
                       : e->binary == BinaryOp::k_sub ? " - "
                       : e->binary == BinaryOp::k_mul ? " * "
                       : e->binary == BinaryOp::k_and ? " & "
                       : e->binary == BinaryOp::k_or  ? " | "
                       : e->binary == BinaryOp::k_xor ? " ^ "
                                                      : nullptr;
      if (op) {
        text = "(" + low_word(e->args[0], which) + op + low_word(e->args[1], which) + ")";
        break;
      }
      [[fallthrough]];
    }
    default:
      text = "int(" + value(e, which) + ")";
  }
  if (text.size() > kLongestExpression) {
    text = define("int", text);
    low_words_[{e.get(), which}] = text;
  }
  return text;
}

// The place of an element.
std::string ShaderPrinter::element(const loop::BufferNode& b, const loop::Expr& index,
                                   const std::string& lane) {
  const std::string& name = buffers_.at(&b);
  if (b.scope == loop::Scope::kGlobal) return name + "(" + low_word(index, lane) + ")";
  if (distribution_.placements.at(&b) != Placement::kDistributed)
    return name + "[" + low_word(index, lane) + "]";
  int64_t n = 0;
  QUERNEL_ASSERT(is_aligned_vector(index, &n));
  if (lane != kLane) refuse("a register of another lane");
  return name + "[" + std::to_string(n) + "]";
}

// Memory is not touched where the predicate is false.
std::string ShaderPrinter::load(const loop::ExprNode& e, const std::string& lane) {
  const loop::BufferNode& b = *e.buffer;
  if (e.args.size() > 1 && b.size == 0) return value(e.args[2], lane);
  std::string x = element(b, e.args[0], lane);
  if (b.scope == loop::Scope::kGlobal) {
    if (b.dtype == DType::kBool) x = "(uint(" + x + ") != 0u)";
    if (bit_width(b.dtype) < 32 && b.dtype != DType::kBool) x = glsl_type(b.dtype) + "(" + x + ")";
  }
  std::string guard;
  int64_t always = 0;
  if (e.args.size() > 1 && !(loop::as_const_int(e.args[1], &always) && always != 0))
    guard = value(e.args[1], lane);
  std::string otherwise =
      e.args.size() > 1 ? value(e.args[2], lane) : constant(*loop::const_bits({b.dtype, 1}, 0));
  bool is_distributed =
      b.scope != loop::Scope::kGlobal && distribution_.placements.at(&b) == Placement::kDistributed;
  if (e.type.lanes > 1 && e.type.lanes < distribution_.invocations && !is_distributed && lane == kLane)
    guard = "lane < " + std::to_string(e.type.lanes) + (guard.empty() ? "" : " && " + guard);
  if (guard.empty()) return x;
  return "(" + guard + " ? " + x + " : " + otherwise + ")";
}

std::string ShaderPrinter::call(const loop::ExprNode& e, const std::vector<std::string>& operands) {
  auto operation = std::make_shared<loop::ExprNode>(e);
  operation->type.lanes = 1;
  std::string text;
  for (size_t i = 0; i < operation->args.size(); ++i) {
    const loop::Expr arg = operation->args[i];
    DType dtype = arg->type.dtype;
    // Powers, and which zero is the larger one, depend on constants.
    if (const loop::ExprNode* number = as_constant(arg); number && is_float(dtype)) {
      operation->args[i] = loop::const_bits(arg->type.with_lanes(1), number->bits);
      continue;
    }
    auto parameter = std::make_shared<loop::VarNode>();
    parameter->name = "x" + std::to_string(i);
    parameter->type = arg->type.with_lanes(1);
    operation->args[i] = loop::var_ref(parameter);
    std::string x = operands[i];
    if (dtype == DType::kI64) x = "uint64_t(int64_t(" + x + "))";
    if (dtype == DType::kI32) x = "uint(" + x + ")";
    if (dtype == DType::kI8) x = "(uint(" + x + ") & 255u)";
    if (dtype == DType::kI16) x = "(uint(" + x + ") & 65535u)";
    text += (text.empty() ? "" : ", ") + x;
  }
  text = functions_.name_of(operation) + "(" + text + ")";
  DType dtype = e.type.dtype;
  if (!is_signed_integer(dtype)) return text;
  if (bit_width(dtype) < 32)
    return "bitfieldExtract(int(" + text + "), 0, " + std::to_string(bit_width(dtype)) + ")";
  return glsl_type(dtype) + "(" + text + ")";
}

std::string ShaderPrinter::unary(const loop::ExprNode& e, const std::string& lane) {
  DType dtype = e.args[0]->type.dtype;
  std::string x = value(e.args[0], lane);
  if (is_predicate(e.unary) && !is_float(dtype)) return "false";
  if (dtype == DType::kBool) {
    bool inverts = e.unary == UnaryOp::k_not || e.unary == UnaryOp::k_bit_not || e.unary == UnaryOp::k_neg;
    return inverts ? "(!" + x + ")" : x;
  }
  if (is_integer(dtype)) {
    if (e.unary == UnaryOp::k_not || e.unary == UnaryOp::k_bit_not) return wrapped(dtype, "~" + x);
    if (e.unary == UnaryOp::k_floor || e.unary == UnaryOp::k_ceil || e.unary == UnaryOp::k_round ||
        e.unary == UnaryOp::k_trunc)
      return x;
  }
  if (is_wide_float(dtype) && e.unary == UnaryOp::k_neg) return "(-" + x + ")";
  return call(e, {x});
}

std::string ShaderPrinter::bool_binary(BinaryOp op, const std::string& a, const std::string& b) {
  auto infix = [&](const char* text) { return "(" + a + " " + text + " " + b + ")"; };
  switch (op) {
    case BinaryOp::k_add:
    case BinaryOp::k_max:
    case BinaryOp::k_or:
      return infix("||");
    case BinaryOp::k_mul:
    case BinaryOp::k_min:
    case BinaryOp::k_and:
      return infix("&&");
    case BinaryOp::k_xor:
    case BinaryOp::k_ne:
      return infix("^^");
    case BinaryOp::k_eq:
      return infix("==");
    case BinaryOp::k_lt:
      return "(!" + a + " && " + b + ")";
    case BinaryOp::k_gt:
      return "(" + a + " && !" + b + ")";
    case BinaryOp::k_le:
      return "(!" + a + " || " + b + ")";
    case BinaryOp::k_ge:
      return "(" + a + " || !" + b + ")";
    default:
      QUERNEL_UNREACHABLE("bool operation");
  }
}

std::string ShaderPrinter::binary(const loop::Expr& node, const std::string& lane) {
  const loop::ExprNode& e = *node;
  DType dtype = e.args[0]->type.dtype;
  if (is_integer(dtype) && !is_comparison(e.binary)) return integer_binary(node, lane);
  std::string a = value(e.args[0], lane), b = value(e.args[1], lane);
  if (dtype == DType::kBool) return bool_binary(e.binary, a, b);
  auto infix = [&](const char* op) { return "(" + a + " " + op + " " + b + ")"; };
  if (is_comparison(e.binary) && (is_wide_float(dtype) || is_integer(dtype))) {
    if (dtype == DType::kI64 && !(fits_32_bits(e.args[0]) && fits_32_bits(e.args[1]))) {
      a = "int64_t(" + a + ")";
      b = "int64_t(" + b + ")";
    }
    return infix(e.binary == BinaryOp::k_eq   ? "=="
                 : e.binary == BinaryOp::k_ne ? "!="
                 : e.binary == BinaryOp::k_lt ? "<"
                 : e.binary == BinaryOp::k_le ? "<="
                 : e.binary == BinaryOp::k_gt ? ">"
                                              : ">=");
  }
  if (is_wide_float(dtype)) {
    if (e.binary == BinaryOp::k_add) return infix("+");
    if (e.binary == BinaryOp::k_sub) return infix("-");
    if (e.binary == BinaryOp::k_mul) return infix("*");
    if (e.binary == BinaryOp::k_div) return infix("/");
  }
  // The machine-code form has an accumulator second, too (KernelEmitter::binary).
  const loop::ExprNode& left = *e.args[0];
  bool is_extreme = e.binary == BinaryOp::k_max || e.binary == BinaryOp::k_min;
  if (is_extreme && left.kind == ExprKind::kLoad && left.buffer->scope == loop::Scope::kRegister) {
    loop::ExprNode swapped = e;
    std::swap(swapped.args[0], swapped.args[1]);
    return call(swapped, {b, a});
  }
  return call(e, {a, b});
}

// The value that a narrow type keeps of a result in 32 bits.
std::string ShaderPrinter::wrapped(DType dtype, const std::string& text) {
  int width = bit_width(dtype);
  if (width >= 32) return "(" + text + ")";
  if (is_signed_integer(dtype)) return "bitfieldExtract(" + text + ", 0, " + std::to_string(width) + ")";
  return "((" + text + ") & " + std::to_string((1u << width) - 1) + "u)";
}

std::string ShaderPrinter::integer_binary(const loop::Expr& node, const std::string& lane) {
  const loop::ExprNode& e = *node;
  DType dtype = e.type.dtype;
  bool is_index = dtype == DType::kI64;
  bool narrow = is_index && fits_32_bits(node);
  auto operand = [&](size_t i, bool twice = false) {
    std::string text = twice ? atom(e.args[i], lane) : value(e.args[i], lane);
    return is_index && !narrow && fits_32_bits(e.args[i]) ? "int64_t(" + text + ")" : text;
  };
  const char* op = nullptr;
  switch (e.binary) {
    case BinaryOp::k_add:
      op = " + ";
      break;
    case BinaryOp::k_sub:
      op = " - ";
      break;
    case BinaryOp::k_mul:
      op = " * ";
      break;
    case BinaryOp::k_and:
      op = " & ";
      break;
    case BinaryOp::k_or:
      op = " | ";
      break;
    case BinaryOp::k_xor:
      op = " ^ ";
      break;
    case BinaryOp::k_max:
    case BinaryOp::k_min: {
      std::string a = operand(0, true), b = operand(1, true);
      return "(" + a + (e.binary == BinaryOp::k_max ? " > " : " < ") + b + " ? " + a + " : " + b + ")";
    }
    default:
      break;
  }
  if (op) return wrapped(dtype, operand(0) + op + operand(1));
  int64_t divisor = 0;
  bool divides = e.binary == BinaryOp::k_idiv || e.binary == BinaryOp::k_fdiv || e.binary == BinaryOp::k_div;
  bool remains = e.binary == BinaryOp::k_mod || e.binary == BinaryOp::k_fmod;
  if (is_index && (divides || remains) && loop::as_const_int(e.args[1], &divisor) && divisor > 0 &&
      ranges_(e.args[0]).lo >= 0)
    return "(" + operand(0) + (divides ? " / " : " % ") + operand(1) + ")";
  std::string x = call(e, {value(e.args[0], lane), value(e.args[1], lane)});
  return narrow ? "int(" + x + ")" : x;
}

// f16 and bf16 are computed in f32 and rounded after every operation, by a function.
std::string ShaderPrinter::mul_acc(const loop::ExprNode& e, const std::string& lane) {
  DType dtype = e.type.dtype;
  std::string a = value(e.args[0], lane), b = value(e.args[1], lane), c = value(e.args[2], lane);
  if (dtype == DType::kBool) return "((" + a + " && " + b + ") || " + c + ")";
  if (is_wide_float(dtype)) return "fma(" + a + ", " + b + ", " + c + ")";
  if (is_float(dtype)) return call(e, {a, b, c});
  if (dtype == DType::kI64) a = "int64_t(" + a + ")";
  return wrapped(dtype, a + " * " + b + " + " + c);
}

std::string ShaderPrinter::dot(const loop::ExprNode& e, const std::string& lane) {
  std::string a = value(e.args[0], lane), b = value(e.args[1], lane), c = value(e.args[2], lane);
  bool a_signed = e.args[0]->type.dtype == DType::kI32, b_signed = e.args[1]->type.dtype == DType::kI32;
  if (e.type.dtype == DType::kF32 || !target_.has_dot(a_signed, b_signed)) return call(e, {a, b, c});
  if (b_signed && !a_signed) std::swap(a, b);  // the signed one comes first
  std::string operands = "(" + a + ", " + b + ")";
  if (a_signed && b_signed) return "(qnl_dot_i32_i32" + operands + " + " + c + ")";
  if (a_signed != b_signed) return "(qnl_dot_i32_u32" + operands + " + " + c + ")";
  return "(int(qnl_dot_u32_u32" + operands + ") + " + c + ")";
}

std::string ShaderPrinter::cast(const loop::ExprNode& e, const std::string& lane) {
  DType from = e.args[0]->type.dtype, to = e.type.dtype;
  std::string x = value(e.args[0], lane);
  if (from == to) return x;
  bool whole = !is_float(from) && !is_float(to);
  if (to == DType::kBool && whole)
    return "(" + x + " != " + (from == DType::kU64 ? "0ul" : is_signed_integer(from) ? "0" : "0u") + ")";
  if (to == DType::kBool && is_wide_float(from)) return "(" + x + " != 0.0)";
  if ((is_wide_float(from) || !is_float(from)) && is_wide_float(to)) return glsl_type(to) + "(" + x + ")";
  if (!whole) return call(e, {x});
  if (to == DType::kI64 && from != DType::kU32 && from != DType::kU64) return "int(" + x + ")";
  // Through the word of the same sign, whose bits another sign keeps.
  if (from == DType::kI64) x = "int64_t(" + x + ")";
  return wrapped(to, glsl_type(to) + "(" + x + ")");
}

// Elements of one width to another: as bytes lie in memory, the first ones lowest.
std::string ShaderPrinter::bit_cast(const loop::ExprNode& e, const std::string& lane) {
  const loop::Expr& from = e.args[0];
  DType source = from->type.dtype, target = e.type.dtype;
  int from_bits = std::max(bit_width(source), 8), to_bits = std::max(bit_width(target), 8);
  auto as_bits = [&](const std::string& x) -> std::string {
    if (source == DType::kF32) return "floatBitsToUint(" + x + ")";
    if (source == DType::kF64) return "doubleBitsToUint64(" + x + ")";
    if (source == DType::kI64) return "uint64_t(int64_t(" + x + "))";
    if (source == DType::kU64) return x;
    if (!is_signed_integer(source)) return "uint(" + x + ")";
    return from_bits == 32 ? "uint(" + x + ")"
                           : "(uint(" + x + ") & " + std::to_string((1u << from_bits) - 1) + "u)";
  };
  auto of_bits = [&](const std::string& x) -> std::string {
    if (target == DType::kF32) return "uintBitsToFloat(" + x + ")";
    if (target == DType::kF64) return "uint64BitsToDouble(" + x + ")";
    if (target == DType::kBool) return "(" + x + " != 0u)";
    if (!is_signed_integer(target)) return x;
    return to_bits < 32 ? wrapped(target, "int(" + x + ")") : glsl_type(target) + "(" + x + ")";
  };
  if (source == target) return value(from, lane);
  if (from_bits == to_bits) return of_bits(as_bits(value(from, lane)));
  std::string word = std::max(from_bits, to_bits) == 64 ? "uint64_t" : "uint";
  if (from_bits < to_bits) {
    int parts = to_bits / from_bits;
    std::string text;
    for (int i = 0; i < parts; ++i) {
      std::string which = std::to_string(i);
      if (e.type.lanes > 1) which = "(" + lane + " * " + std::to_string(parts) + " + " + which + ")";
      std::string part = word + "(" + as_bits(value(from, which)) + ")";
      text += i == 0 ? part : " | (" + part + " << " + std::to_string(i * from_bits) + "u)";
    }
    return of_bits("(" + text + ")");
  }
  int parts = from_bits / to_bits;
  std::string which = from->type.lanes == 1 ? kLane : "(" + lane + " / " + std::to_string(parts) + ")";
  std::string whole = word + "(" + as_bits(value(from, which)) + ")";
  std::string shifted = "uint(" + whole + " >> uint(" + lane + " % " + std::to_string(parts) + " * " +
                        std::to_string(to_bits) + "))";
  if (to_bits < 32) shifted = "(" + shifted + " & " + std::to_string((1u << to_bits) - 1) + "u)";
  return of_bits(shifted);
}

}  // namespace quernel::codegen
