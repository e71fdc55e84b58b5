#include "loop/print.h"

#include <charconv>
#include <cmath>

#include "loop/evaluate_scalar.h"
#include "support/diagnostic.h"

namespace quernel::loop {
namespace {

// How tightly an expression's outermost operator binds; an operand that binds less gets parentheses.
enum Precedence { kCompare, kSum, kProduct, kPrimary };

struct Infix {
  std::string_view sign;
  Precedence precedence;
};

Infix infix(BinaryOp op) {
  switch (op) {
    case BinaryOp::k_add:
      return {" + ", kSum};
    case BinaryOp::k_sub:
      return {" - ", kSum};
    case BinaryOp::k_mul:
      return {" * ", kProduct};
    case BinaryOp::k_div:
      return {" / ", kProduct};
    case BinaryOp::k_eq:
      return {" == ", kCompare};
    case BinaryOp::k_ne:
      return {" != ", kCompare};
    case BinaryOp::k_lt:
      return {" < ", kCompare};
    case BinaryOp::k_le:
      return {" <= ", kCompare};
    case BinaryOp::k_gt:
      return {" > ", kCompare};
    case BinaryOp::k_ge:
      return {" >= ", kCompare};
    default:
      return {"", kPrimary};
  }
}

template <class T>
std::string shortest(T value, int base_or_zero = 0) {
  char text[64];
  std::to_chars_result end{};
  if constexpr (std::is_floating_point_v<T>)
    end = std::to_chars(text, text + sizeof text, value);
  else
    end = std::to_chars(text, text + sizeof text, value, base_or_zero);
  return std::string(text, end.ptr);
}

// `1.5f32`, `3i32`, `42` (i64), `true`; what decimals cannot say exactly prints as its bits,
// `f32(0x7fc00000)`.
std::string scalar_constant(DType dtype, uint64_t bits) {
  std::string suffix(quernel::to_string(dtype));
  if (dtype == DType::kBool) return bits ? "true" : "false";
  if (dtype == DType::kI64) return shortest(static_cast<int64_t>(bits), 10);
  if (dtype == DType::kU64) return shortest(bits, 10) + suffix;
  if (!is_float(dtype)) return shortest(bits_to_int(dtype, bits), 10) + suffix;
  double value = bits_to_double(dtype, bits);
  if (!std::isfinite(value) || bit_width(dtype) == 8) return suffix + "(0x" + shortest(bits, 16) + ")";
  // A narrow float's value is an f32 too, whose digits identify it.
  return (dtype == DType::kF64 ? shortest(value) : shortest(static_cast<float>(value))) + suffix;
}

class Printer {
 public:
  explicit Printer(const std::vector<std::string>& symbols) : symbols_(symbols) {}
  std::string take() { return std::move(out_); }
  void kernel(const Kernel& kernel);
  void expr(const Expr& e, Precedence context = kCompare);

 private:
  void stmt(const Stmt& stmt);
  void body(const Stmt& stmt);  // `{`, the statements of a block, `}`
  void loop(const StmtNode& stmt);
  void condition(const StmtNode& stmt);
  void matrix(const MatrixPlace& place);
  void matrices(const StmtNode& s);
  void buffer(const BufferNode& buffer);
  void call(std::string_view name, const std::vector<Expr>& args, std::string_view leading = {});
  void indent() { out_.append(static_cast<size_t>(depth_) * 2, ' '); }

  const std::vector<std::string>& symbols_;
  std::string out_;
  int depth_ = 0;
};

void Printer::call(std::string_view name, const std::vector<Expr>& args, std::string_view leading) {
  out_ += name;
  out_ += '(';
  out_ += leading;
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0 || !leading.empty()) out_ += ", ";
    expr(args[i]);
  }
  out_ += ')';
}

void Printer::expr(const Expr& e, Precedence context) {
  std::string lanes = std::to_string(e->type.lanes);
  switch (e->kind) {
    case ExprKind::kConst:
      out_ += e->type.lanes == 1 ? scalar_constant(e->type.dtype, e->bits)
                                 : "splat(" + scalar_constant(e->type.dtype, e->bits) + ", " + lanes + ")";
      return;
    case ExprKind::kVar:
      out_ += e->var->name;
      return;
    case ExprKind::kSymbol: {
      bool named = e->symbol >= 0 && static_cast<size_t>(e->symbol) < symbols_.size();
      out_ += "$" + (named ? symbols_[static_cast<size_t>(e->symbol)] : std::to_string(e->symbol));
      return;
    }
    case ExprKind::kLoad:
      out_ += "%" + e->buffer->name + "[";
      expr(e->args[0]);
      if (e->args.size() == 3) {
        out_ += " if ";
        expr(e->args[1]);
        out_ += " else ";
        expr(e->args[2]);
      }
      out_ += "]";
      return;
    case ExprKind::kUnary:
      return call(quernel::to_string(e->unary), e->args);
    case ExprKind::kBinary: {
      Infix sign = infix(e->binary);
      if (sign.sign.empty()) return call(quernel::to_string(e->binary), e->args);
      bool parenthesise = sign.precedence < context;
      if (parenthesise) out_ += "(";
      // Left-associative; comparisons do not chain.
      expr(e->args[0], sign.precedence == kCompare ? kSum : sign.precedence);
      out_ += sign.sign;
      expr(e->args[1], static_cast<Precedence>(sign.precedence + 1));
      if (parenthesise) out_ += ")";
      return;
    }
    case ExprKind::kMulAcc:
      return call("mulacc", e->args);
    case ExprKind::kSelect:
      return call("select", e->args);
    case ExprKind::kCast:
      return call("cast", e->args, quernel::to_string(e->type.dtype));
    case ExprKind::kBitcast:
      return call("bitcast", e->args, to_string(e->type));
    case ExprKind::kReduceLanes:
      return call("reduce_lanes", e->args, quernel::to_string(e->binary));
    case ExprKind::kInterleave:
      return call(e->stride == 0 ? "interleave_lower" : "interleave_upper", e->args);
    case ExprKind::kDot:
      return call("dot", e->args);
    case ExprKind::kDot2x2:
      return call("dot_2x2", e->args);
    case ExprKind::kBroadcast:
      call("broadcast", e->args);
      out_.pop_back();
      out_ += ", " + lanes + ")";
      return;
    case ExprKind::kRamp:
      call("ramp", e->args);
      out_.pop_back();
      out_ += ", " + std::to_string(e->stride) + ", " + lanes + ")";
      return;
  }
}

void Printer::buffer(const BufferNode& buffer) {
  out_ += "%" + buffer.name + ": " + std::string(quernel::to_string(buffer.dtype)) + "[" +
          (buffer.size == kUnknownSize ? "?" : std::to_string(buffer.size)) + "] ";
  if (buffer.scope != Scope::kGlobal) {
    out_ += to_string(buffer.scope);
  } else {
    out_ += to_string(buffer.access);
    out_ += " binding " + std::to_string(buffer.binding);
    if (buffer.overlaps) out_ += " overlapping";
    if (buffer.aligned) out_ += " aligned";
    if (buffer.below != 0) out_ += " below " + std::to_string(buffer.below);
  }
  out_ += "\n";
}

void Printer::body(const Stmt& stmt) {
  out_ += "{\n";
  ++depth_;
  if (stmt->kind == StmtKind::kBlock)
    for (const Stmt& child : stmt->body) this->stmt(child);
  else
    this->stmt(stmt);
  --depth_;
  indent();
  out_ += "}";
}

void Printer::loop(const StmtNode& stmt) {
  out_ += "for " + stmt.var->name + " in " + std::string(to_string(stmt.axis)) + "(";
  expr(stmt.extent);
  out_ += ") ";
  body(stmt.body[0]);
  out_ += "\n";
}

void Printer::condition(const StmtNode& stmt) {
  out_ += "if ";
  expr(stmt.condition);
  out_ += " ";
  body(stmt.body[0]);
  if (stmt.body.size() > 1) {
    out_ += " else ";
    body(stmt.body[1]);
  }
  out_ += "\n";
}

void Printer::matrix(const MatrixPlace& place) {
  out_ += "%" + place.buffer->name + "[";
  expr(place.index);
  out_ += ", " + std::to_string(place.row_stride) + ", " + std::to_string(place.column_stride) + "]";
}

void Printer::matrices(const StmtNode& s) {
  const MatrixOperands& m = *s.matrices;
  const std::string shape = std::to_string(m.rows) + ", " + std::to_string(m.columns);
  if (s.kind == StmtKind::kStoreMatrix) {
    out_ += "store_matrix(" + shape + ") ";
    matrix(m.a);
    out_ += " = %" + s.buffer->name + "\n";
    return;
  }
  out_ += "multiply_matrices(" + shape + ", " + std::to_string(m.steps) + ") %" + s.buffer->name + " += ";
  matrix(m.a);
  out_ += " * ";
  matrix(m.b);
  out_ += "\n";
}

void Printer::stmt(const Stmt& stmt) {
  indent();
  switch (stmt->kind) {
    case StmtKind::kBlock:
      body(stmt);
      out_ += "\n";
      return;
    case StmtKind::kFor:
      return loop(*stmt);
    case StmtKind::kIf:
      return condition(*stmt);
    case StmtKind::kLet:
      out_ += "let " + stmt->var->name + ": " + to_string(stmt->var->type) + " = ";
      expr(stmt->value);
      out_ += "\n";
      return;
    case StmtKind::kStore:
      out_ += "%" + stmt->buffer->name + "[";
      expr(stmt->index);
      if (stmt->condition) {
        out_ += " if ";
        expr(stmt->condition);
      }
      out_ += "] = ";
      expr(stmt->value);
      out_ += "\n";
      return;
    case StmtKind::kPrefetch:
      out_ += "prefetch %" + stmt->buffer->name + "[";
      expr(stmt->index);
      out_ += "]\n";
      return;
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
      return matrices(*stmt);
    case StmtKind::kAlloc:
      out_ += "alloc ";
      buffer(*stmt->buffer);
      return;
    case StmtKind::kBarrier:
      out_ += "barrier\n";
      return;
  }
}

void Printer::kernel(const Kernel& kernel) {
  out_ += "kernel @" + kernel.name;
  for (size_t i = 0; i < kernel.symbols.size(); ++i) out_ += (i ? ", $" : " symbols($") + kernel.symbols[i];
  if (!kernel.symbols.empty()) out_ += ")";
  for (size_t i = 0; i < kernel.grid.size(); ++i) {
    out_ += (i ? ", " : " grid(") + kernel.grid[i].var->name + ": ";
    expr(kernel.grid[i].extent);
  }
  if (!kernel.grid.empty()) out_ += ")";
  out_ += " {\n";
  ++depth_;
  for (const Buffer& buffer : kernel.buffers) {
    indent();
    out_ += "buffer ";
    this->buffer(*buffer);
  }
  if (kernel.body && kernel.body->kind == StmtKind::kBlock)
    for (const Stmt& child : kernel.body->body) stmt(child);
  else if (kernel.body)
    stmt(kernel.body);
  out_ += "}\n";
}

}  // namespace

std::string to_string(Type type) {
  std::string text(quernel::to_string(type.dtype));
  return type.lanes == 1 ? text : text + "x" + std::to_string(type.lanes);
}

std::string_view to_string(AxisKind axis) {
  switch (axis) {
    case AxisKind::kSerial:
      return "serial";
    case AxisKind::kReduction:
      return "reduction";
    case AxisKind::kUnrolled:
      return "unrolled";
    case AxisKind::kVector:
      return "vector";
  }
  QUERNEL_UNREACHABLE("axis kind is not handled");
}

std::string_view to_string(Access access) {
  switch (access) {
    case Access::kRead:
      return "read";
    case Access::kWrite:
      return "write";
    case Access::kReadWrite:
      return "readwrite";
  }
  QUERNEL_UNREACHABLE("access is not handled");
}

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::kGlobal:
      return "global";
    case Scope::kShared:
      return "shared";
    case Scope::kRegister:
      return "register";
    case Scope::kMatrix:
      return "matrix";
  }
  QUERNEL_UNREACHABLE("scope is not handled");
}

std::string to_string(const Expr& e, const std::vector<std::string>& symbols) {
  Printer printer(symbols);
  printer.expr(e);
  return printer.take();
}

std::string to_string(const Kernel& kernel) {
  Printer printer(kernel.symbols);
  printer.kernel(kernel);
  return printer.take();
}

}  // namespace quernel::loop
