// Expressions: one lane at a time. An expression that is used more than once, or that is long, gets a name in
// the sink of its lane.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "codegen/c/kernel_printer.h"
#include "codegen/c/program_printer.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;

namespace {

constexpr size_t kLongestExpression = 88;  // characters; what is longer gets a name

bool is_word(const std::string& text) {
  for (char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') return false;
  return true;
}

std::string sized(const char* prefix, int width) { return prefix + std::to_string(width) + "_t"; }

std::string unsigned_type(DType dtype) { return sized("uint", std::max(bit_width(dtype), 8)); }

// A constant, also as all lanes of a vector.
const loop::ExprNode* as_constant(const loop::Expr& e) {
  if (e->kind == ExprKind::kConst) return e.get();
  return e->kind == ExprKind::kBroadcast ? as_constant(e->args[0]) : nullptr;
}

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

std::string KernelPrinter::value_type(DType dtype) {
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

std::string KernelPrinter::value_type(const loop::Expr& e) {
  return fits_32_bits(e) ? "int32_t" : value_type(e->type.dtype);
}

std::string KernelPrinter::scalar(const loop::Expr& e) {
  QUERNEL_ASSERT(e->type.lanes == 1);
  return value(e, {}, scalar_sink_);
}

std::string KernelPrinter::define(const std::string& type, const std::string& text, Sink& sink) {
  std::string name = "t" + std::to_string(next_name_++);
  *sink.out += std::string(static_cast<size_t>(2 * sink.indent), ' ') + "const " + type + " " + name + " = " +
               text + ";\n";
  return name;
}

// What all lanes share is computed before them.
std::string KernelPrinter::value(const loop::Expr& e, const Lane& lane, Sink& sink) {
  if (e->type.lanes == 1 && &sink != &scalar_sink_) {
    bool simple = e->kind == ExprKind::kConst || e->kind == ExprKind::kVar || e->kind == ExprKind::kSymbol;
    return simple ? scalar(e) : atom(e, {}, scalar_sink_);
  }
  const std::string& place = e->type.lanes == 1 ? std::string() : lane.text;
  auto known = sink.names.find({e.get(), place});
  if (known != sink.names.end()) return known->second;
  std::string text = print_expr(e, lane, sink);
  auto uses = uses_.find(e.get());
  bool repeated = uses != uses_.end() && uses->second > 1;
  if (!is_word(text) && (repeated || text.size() > kLongestExpression)) {
    text = define(value_type(e), text, sink);
    sink.names[{e.get(), place}] = text;
  }
  return text;
}

std::string KernelPrinter::atom(const loop::Expr& e, const Lane& lane, Sink& sink) {
  std::string text = value(e, lane, sink);
  if (is_word(text) || e->kind == ExprKind::kConst) return text;
  text = define(value_type(e), text, sink);
  sink.names[{e.get(), e->type.lanes == 1 ? std::string() : lane.text}] = text;
  return text;
}

std::string KernelPrinter::print_expr(const loop::Expr& node, const Lane& lane, Sink& sink) {
  const loop::ExprNode& e = *node;
  auto arg = [&](size_t i) { return value(e.args[i], lane, sink); };
  switch (e.kind) {
    case ExprKind::kConst:
      return constant(e);
    case ExprKind::kVar: {
      auto alias = aliases_.find(e.var.get());
      if (alias != aliases_.end()) return value(alias->second, lane, sink);
      const std::string& name = vars_.at(e.var.get());
      return e.type.lanes == 1 ? name : name + "[" + lane.text + "]";
    }
    case ExprKind::kSymbol:
      return symbols_[static_cast<size_t>(e.symbol)];
    case ExprKind::kLoad:
      return load(e, lane, sink);
    case ExprKind::kUnary:
      return unary(e, lane, sink);
    case ExprKind::kBinary:
      return binary(node, lane, sink);
    case ExprKind::kMulAcc:
      return mul_acc(e, lane, sink);
    case ExprKind::kSelect:
      return "(" + arg(0) + " ? " + arg(1) + " : " + arg(2) + ")";
    case ExprKind::kCast:
      return cast(node, lane, sink);
    case ExprKind::kBitcast:
      return bit_cast(e, lane, sink);
    case ExprKind::kRamp:
      return ramp(e, lane);
    case ExprKind::kBroadcast:
      return arg(0);
    case ExprKind::kReduceLanes:
      return reduce_lanes(e);
    case ExprKind::kInterleave:
      return interleave(e, lane, sink);
    case ExprKind::kDot:
      return call(e, {arg(0), arg(1), arg(2)});
  }
  QUERNEL_UNREACHABLE("expression kind");
}

std::string KernelPrinter::constant(const loop::ExprNode& e) {
  DType dtype = e.type.dtype;
  if (dtype == DType::kF32 || dtype == DType::kF64) {
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
std::string KernelPrinter::load(const loop::ExprNode& e, const Lane& lane, Sink& sink) {
  const loop::BufferNode& b = *e.buffer;
  auto arg = [&](size_t i) { return value(e.args[i], lane, sink); };
  if (e.args.size() > 1 && b.size == 0) return "((void)" + name_of(b) + ", " + arg(2) + ")";
  std::string element = name_of(b) + "[" + arg(0) + "]";
  if (b.dtype == DType::kBool) element = "(" + element + " != 0)";
  if (e.args.size() == 1) return element;
  int64_t always = 0;
  if (loop::as_const_int(e.args[1], &always) && always != 0) return element;
  return "(" + arg(1) + " ? " + element + " : " + arg(2) + ")";
}

std::string KernelPrinter::call(const loop::ExprNode& e, const std::vector<std::string>& operands) {
  auto operation = std::make_shared<loop::ExprNode>(e);
  operation->type.lanes = 1;
  std::string text;
  bool is_reduction = e.kind == ExprKind::kReduceLanes;
  if (is_reduction) operation->kind = ExprKind::kBinary, operation->args.push_back(e.args[0]);
  for (size_t i = 0; i < operation->args.size(); ++i) {
    const loop::Expr arg = operation->args[i];
    // Powers, and which zero is the larger one, depend on constants.
    const loop::ExprNode* number = is_reduction ? nullptr : as_constant(arg);
    if (number && is_float(arg->type.dtype)) {
      operation->args[i] = loop::const_bits(arg->type.with_lanes(1), number->bits);
      continue;
    }
    auto parameter = std::make_shared<loop::VarNode>();
    parameter->name = "x" + std::to_string(i);
    parameter->type = arg->type.with_lanes(1);
    operation->args[i] = loop::var_ref(parameter);
    text += (text.empty() ? "" : ", ") + operands[i];
  }
  text = functions_.name_of(operation) + "(" + text + ")";
  DType dtype = e.type.dtype;
  bool plain = dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kBool;
  return plain || !is_signed_integer(dtype) ? text : "(" + value_type(dtype) + ")" + text;
}

std::string KernelPrinter::unary(const loop::ExprNode& e, const Lane& lane, Sink& sink) {
  DType dtype = e.args[0]->type.dtype;
  std::string x = value(e.args[0], lane, sink);
  if (dtype == DType::kBool) {
    if (e.unary == UnaryOp::k_not || e.unary == UnaryOp::k_bit_not || e.unary == UnaryOp::k_neg)
      return "(!" + x + ")";
    if (is_predicate(e.unary)) return "((void)" + x + ", 0)";
    return x;
  }
  if (is_integer(dtype)) {
    if (e.unary == UnaryOp::k_not || e.unary == UnaryOp::k_bit_not) return "(" + value_type(dtype) + ")~" + x;
    if (is_predicate(e.unary)) return "((void)" + x + ", 0)";
    if (e.unary == UnaryOp::k_floor || e.unary == UnaryOp::k_ceil || e.unary == UnaryOp::k_round ||
        e.unary == UnaryOp::k_trunc)
      return x;
  }
  bool is_wide = dtype == DType::kF32 || dtype == DType::kF64;
  if (is_wide && e.unary == UnaryOp::k_neg) return "(-" + x + ")";
  return call(e, {x});
}

std::string KernelPrinter::binary(const loop::Expr& node, const Lane& lane, Sink& sink) {
  const loop::ExprNode& e = *node;
  DType dtype = e.args[0]->type.dtype;
  if (is_integer(dtype) && !is_comparison(e.binary)) return integer_binary(node, lane, sink);
  std::string a = value(e.args[0], lane, sink), b = value(e.args[1], lane, sink);
  auto infix = [&](const char* op) { return "(" + a + " " + op + " " + b + ")"; };
  if (dtype == DType::kBool) {
    switch (e.binary) {
      case BinaryOp::k_add:
      case BinaryOp::k_max:
      case BinaryOp::k_or:
        return infix("|");
      case BinaryOp::k_mul:
      case BinaryOp::k_min:
      case BinaryOp::k_and:
        return infix("&");
      case BinaryOp::k_xor:
      case BinaryOp::k_ne:
        return infix("^");
      case BinaryOp::k_eq:
        return infix("==");
      case BinaryOp::k_lt:
        return "((!" + a + ") & " + b + ")";
      case BinaryOp::k_gt:
        return "(" + a + " & (!" + b + "))";
      case BinaryOp::k_le:
        return "((!" + a + ") | " + b + ")";
      case BinaryOp::k_ge:
        return "(" + a + " | (!" + b + "))";
      default:
        QUERNEL_UNREACHABLE("bool operation");
    }
  }
  bool is_wide = dtype == DType::kF32 || dtype == DType::kF64;
  if (is_comparison(e.binary)) return is_wide || is_integer(dtype) ? compare(e, a, b) : call(e, {a, b});
  if (is_wide) {
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

// C compilers warn of comparisons that a type's range decides.
std::string KernelPrinter::compare(const loop::ExprNode& e, const std::string& a, const std::string& b) {
  DType dtype = e.args[0]->type.dtype;
  auto infix = [&](const char* op) { return "(" + a + " " + op + " " + b + ")"; };
  const char* op = e.binary == BinaryOp::k_eq   ? "=="
                   : e.binary == BinaryOp::k_ne ? "!="
                   : e.binary == BinaryOp::k_lt ? "<"
                   : e.binary == BinaryOp::k_le ? "<="
                   : e.binary == BinaryOp::k_gt ? ">"
                                                : ">=";
  if (!is_integer(dtype) || dtype == DType::kI64) return infix(op);
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
  return infix(op);
}

// Arithmetic that wraps, in a type in which C's does, too.
std::string KernelPrinter::wrapped(const loop::ExprNode& e, const char* op, const std::string& a,
                                   const std::string& b) {
  DType dtype = e.type.dtype;
  std::string word = bit_width(dtype) == 64 ? "(uint64_t)" : "(uint32_t)";
  bool is_word = dtype == DType::kU32 || dtype == DType::kU64;
  if (is_word) return "(" + a + " " + op + " " + b + ")";
  return "(" + value_type(dtype) + ")(" + word + a + " " + op + " " + word + b + ")";
}

std::string KernelPrinter::integer_binary(const loop::Expr& node, const Lane& lane, Sink& sink) {
  const loop::ExprNode& e = *node;
  DType dtype = e.type.dtype;
  std::string a = value(e.args[0], lane, sink), b = value(e.args[1], lane, sink);
  const char* op = nullptr;
  switch (e.binary) {
    case BinaryOp::k_add:
      op = "+";
      break;
    case BinaryOp::k_sub:
      op = "-";
      break;
    case BinaryOp::k_mul:
      op = "*";
      break;
    case BinaryOp::k_and:
      return "(" + a + " & " + b + ")";
    case BinaryOp::k_or:
      return "(" + a + " | " + b + ")";
    case BinaryOp::k_xor:
      return "(" + a + " ^ " + b + ")";
    case BinaryOp::k_max:
    case BinaryOp::k_min:
      a = atom(e.args[0], lane, sink);
      b = atom(e.args[1], lane, sink);
      {
        loop::ExprNode comparison = e;
        comparison.binary = e.binary == BinaryOp::k_max ? BinaryOp::k_gt : BinaryOp::k_lt;
        return "(" + compare(comparison, a, b) + " ? " + a + " : " + b + ")";
      }
    default:
      break;
  }
  if (op) {
    if (dtype != DType::kI64) return wrapped(e, op, a, b);
    if (fits_32_bits(node)) return "(" + a + " " + op + " " + b + ")";
    if (!ranges_(node).finite()) return wrapped(e, op, a, b);
    return "((int64_t)" + a + " " + op + " " + b + ")";
  }
  int64_t divisor = 0;
  bool divides = e.binary == BinaryOp::k_idiv || e.binary == BinaryOp::k_fdiv || e.binary == BinaryOp::k_div;
  bool remains = e.binary == BinaryOp::k_mod || e.binary == BinaryOp::k_fmod;
  if (dtype == DType::kI64 && (divides || remains) && loop::as_const_int(e.args[1], &divisor) &&
      divisor > 0) {
    bool floors = e.binary == BinaryOp::k_fdiv || e.binary == BinaryOp::k_mod;
    if (!floors || ranges_(e.args[0]).lo >= 0) return "(" + a + (divides ? " / " : " % ") + b + ")";
  }
  return call(e, {a, b});
}

// f16 and bf16 are computed in f32 and rounded after every operation, by a function.
std::string KernelPrinter::mul_acc(const loop::ExprNode& e, const Lane& lane, Sink& sink) {
  DType dtype = e.type.dtype;
  std::string a = value(e.args[0], lane, sink), b = value(e.args[1], lane, sink),
              c = value(e.args[2], lane, sink);
  if (dtype == DType::kBool) return "((" + a + " & " + b + ") | " + c + ")";
  if (dtype == DType::kF32 || dtype == DType::kF64) {
    if (!(dtype == DType::kF32 ? f32_fused_ : f64_fused_)) return "(" + a + " * " + b + " + " + c + ")";
    return std::string(dtype == DType::kF32 ? "qnl_fma_f32(" : "qnl_fma_f64(") + a + ", " + b + ", " + c +
           ")";
  }
  if (is_float(dtype)) return call(e, {a, b, c});
  return wrapped(e, "+", wrapped(e, "*", a, b), c);
}

std::string KernelPrinter::cast(const loop::Expr& node, const Lane& lane, Sink& sink) {
  const loop::ExprNode& e = *node;
  DType from = e.args[0]->type.dtype, to = e.type.dtype;
  std::string x = value(e.args[0], lane, sink);
  if (from == to) return x;
  bool from_wide = from == DType::kF32 || from == DType::kF64,
       to_wide = to == DType::kF32 || to == DType::kF64;
  bool whole = !is_float(from) && !is_float(to);
  if (to == DType::kBool && (whole || from_wide)) return "(" + x + " != 0)";
  if ((from_wide && to_wide) || (!is_float(from) && to_wide)) return "(" + value_type(to) + ")" + x;
  if (!whole) return call(e, {x});
  return "(" + value_type(node) + ")" + x;
}

KernelPrinter::Lane KernelPrinter::scaled_lane(const Lane& lane, int factor, int offset) {
  if (lane.text.empty()) return {std::to_string(offset), offset};
  if (lane.number >= 0) return {std::to_string(lane.number * factor + offset), lane.number * factor + offset};
  return {"(" + std::to_string(factor) + " * " + lane.text + " + " + std::to_string(offset) + ")", -1};
}

KernelPrinter::Lane KernelPrinter::divided_lane(const Lane& lane, int divisor, int offset) {
  if (lane.number >= 0)
    return {std::to_string(lane.number / divisor + offset), lane.number / divisor + offset};
  return {"(" + lane.text + " / " + std::to_string(divisor) + " + " + std::to_string(offset) + ")", -1};
}

// Wider elements are put together, and taken apart, as on a little-endian machine, whatever this one is.
std::string KernelPrinter::bit_cast(const loop::ExprNode& e, const Lane& lane, Sink& sink) {
  const loop::Expr& from = e.args[0];
  DType source = from->type.dtype, target = e.type.dtype;
  auto as_bits = [&](const std::string& x) {
    if (source == DType::kF32) return "qnl_bits_f32(" + x + ")";
    if (source == DType::kF64) return "qnl_bits_f64(" + x + ")";
    return is_signed_integer(source) ? "(" + unsigned_type(source) + ")" + x : x;
  };
  auto of_bits = [&](const std::string& x) {
    if (target == DType::kF32) return "qnl_f32_of(" + x + ")";
    if (target == DType::kF64) return "qnl_f64_of(" + x + ")";
    if (target == DType::kBool) return "(" + x + " != 0)";
    return "(" + value_type(target) + ")" + x;
  };
  int from_bits = std::max(bit_width(source), 8), to_bits = std::max(bit_width(target), 8);
  if (from_bits == to_bits) {
    std::string x = value(from, lane, sink);
    return source == target ? x : of_bits(as_bits(x));
  }
  std::string word = sized("uint", std::max(std::max(from_bits, to_bits), 32));
  if (from_bits < to_bits) {
    int parts = to_bits / from_bits;
    std::string text;
    for (int i = 0; i < parts; ++i) {
      Sink& place = sink;
      std::string part = "(" + word + ")" + as_bits(value(from, scaled_lane(lane, parts, i), place));
      text += i == 0 ? part : " | " + part + " << " + std::to_string(i * from_bits);
    }
    return of_bits("(" + text + ")");
  }
  int parts = from_bits / to_bits;
  std::string whole = "(" + word + ")" +
                      as_bits(from->type.lanes == 1 ? value(from, {}, sink)
                                                    : value(from, divided_lane(lane, parts, 0), sink));
  std::string shift = lane.number >= 0 ? std::to_string(lane.number % parts * to_bits)
                                       : "(" + std::to_string(to_bits) + " * (" + lane.text + " % " +
                                             std::to_string(parts) + "))";
  return of_bits("(" + unsigned_type(target) + ")(" + whole + " >> " + shift + ")");
}

std::string KernelPrinter::ramp(const loop::ExprNode& e, const Lane& lane) {
  std::string base = scalar(e.args[0]);
  if (!is_word(base) && base.size() > 40) base = atom(e.args[0], {}, scalar_sink_);
  int64_t number = 0;
  bool is_number = loop::as_const_int(e.args[0], &number);
  if (lane.number >= 0) {
    int64_t offset = lane.number * e.stride;
    if (is_number) return std::to_string(number + offset);
    if (offset == 0) return base;
    return "(" + base + (offset < 0 ? " - " : " + ") + std::to_string(std::abs(offset)) + ")";
  }
  std::string step = e.stride == 1 ? lane.text : lane.text + " * " + std::to_string(e.stride);
  if (is_number && number == 0) return e.stride == 1 ? step : "(" + step + ")";
  return "(" + base + " + " + step + ")";
}

std::string KernelPrinter::interleave(const loop::ExprNode& e, const Lane& lane, Sink& sink) {
  int first = e.stride == 0 ? 0 : e.type.lanes / 2;
  Lane source = divided_lane(lane, 2, first);
  if (lane.number >= 0) return value(e.args[static_cast<size_t>(lane.number % 2)], source, sink);
  return "(" + lane.text + " % 2 ? " + value(e.args[1], source, sink) + " : " +
         value(e.args[0], source, sink) + ")";
}

// Halves are folded pairwise; of an odd count the middle lane waits for the next round.
std::string KernelPrinter::reduce_lanes(const loop::ExprNode& e) {
  const loop::Expr& x = e.args[0];
  DType dtype = x->type.dtype;
  std::string lanes = materialize(x, "r");
  auto fold = [&](const std::string& a, const std::string& b) -> std::string {
    bool is_wide = dtype == DType::kF32 || dtype == DType::kF64;
    bool adds = e.binary == BinaryOp::k_add, multiplies = e.binary == BinaryOp::k_mul;
    if (is_wide && (adds || multiplies)) return a + (adds ? " + " : " * ") + b;
    if (dtype == DType::kBool) {
      bool either = adds || e.binary == BinaryOp::k_max || e.binary == BinaryOp::k_or;
      return "(uint8_t)(" + a + (either ? " | " : " & ") + b + ")";
    }
    if (is_integer(dtype)) {
      if (adds || multiplies) return wrapped(e, adds ? "+" : "*", a, b);
      if (e.binary == BinaryOp::k_and || e.binary == BinaryOp::k_or)
        return a + (e.binary == BinaryOp::k_and ? " & " : " | ") + b;
      return a + (e.binary == BinaryOp::k_max ? " > " : " < ") + b + " ? " + a + " : " + b;
    }
    return call(e, {a, b});
  };
  std::string margin(static_cast<size_t>(2 * scalar_sink_.indent), ' ');
  for (int n = x->type.lanes; n > 1;) {
    int half = n / 2, kept = n - half;
    for (int i = 0; i < half; ++i) {
      std::string a = lanes + "[" + std::to_string(i) + "]", b = lanes + "[" + std::to_string(kept + i) + "]";
      *scalar_sink_.out += margin + a + " = " + fold(a, b) + ";\n";
    }
    n = kept;
  }
  return lanes + "[0]";
}

}  // namespace quernel::codegen
