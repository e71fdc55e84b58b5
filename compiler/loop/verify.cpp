#include "loop/verify.h"

#include <unordered_set>

#include "loop/evaluate_scalar.h"
#include "loop/print.h"

namespace quernel::loop {
namespace {

constexpr size_t kMaxErrors = 20;

bool is_identifier(const std::string& name, bool may_start_with_digit) {
  if (name.empty() || (!may_start_with_digit && name[0] >= '0' && name[0] <= '9')) return false;
  for (char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'))
      return false;
  return name != "true" && name != "false" && name != "if" && name != "else";
}

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}
  Status run();

 private:
  void header();
  void stmt(const Stmt& s);
  void for_loop(const StmtNode& s);
  void store(const StmtNode& s);
  void matrix(const MatrixPlace& place, DType dtype, int64_t rows, int64_t columns, bool is_stored);
  void matrices(const StmtNode& s);
  bool expr(const Expr& e);  // false: there is nothing whose type could be looked at
  std::string expr_problem(const ExprNode& e);
  std::string load_problem(const ExprNode& e);
  std::string binary_problem(const ExprNode& e);
  void index_in_bounds(const BufferNode& buffer, const Expr& index);
  void declare(const Var& var);
  void declare(const Buffer& buffer);
  void check(bool ok, const std::string& message) {
    if (!ok) report(message);
  }
  void report(const std::string& message);
  void quote(const std::string& message, const Expr& e);

  const Kernel& kernel_;
  Diagnostics errors_;
  std::unordered_set<const VarNode*> vars_;        // in scope
  std::unordered_set<const BufferNode*> buffers_;  // in scope
  std::unordered_set<std::string> var_names_, buffer_names_;
  std::unordered_set<const ExprNode*> checked_;  // within the current statement: shared nodes are seen once
  int conditional_ = 0;  // inside an If or a loop that may not run: what is there may be unreachable
};

void Verifier::report(const std::string& message) {
  if (errors_.size() >= kMaxErrors) return;
  Location place;
  place.node = kernel_.name;
  errors_.push_back(internal_error(message, place, "verify_loop"));
}

void Verifier::quote(const std::string& message, const Expr& e) {
  if (errors_.size() >= kMaxErrors) return;
  std::string text = to_string(e, kernel_.symbols);
  if (text.size() > 200) text = text.substr(0, 200) + "...";
  report(message + " in `" + text + "`");
}

void Verifier::declare(const Var& var) {
  check(is_identifier(var->name, false), "'" + var->name + "' is not a variable name");
  check(var_names_.insert(var->name).second, "variable '" + var->name + "' is declared twice");
  check(var->type.lanes >= 1, "variable '" + var->name + "' has no lanes");
  vars_.insert(var.get());
}

void Verifier::declare(const Buffer& buffer) {
  check(is_identifier(buffer->name, true), "'%" + buffer->name + "' is not a buffer name");
  check(buffer_names_.insert(buffer->name).second, "buffer '%" + buffer->name + "' is declared twice");
  check(buffer->size >= 0, "buffer '%" + buffer->name + "' has a negative size");
  check(buffer->size != kUnknownSize || buffer->scope == Scope::kGlobal,
        "buffer '%" + buffer->name + "' expected a known size, as it is local");
  buffers_.insert(buffer.get());
}

void Verifier::header() {
  constexpr int64_t kMostBelow = 127;  // of every integer dtype
  check(is_identifier(kernel_.name, true), "'@" + kernel_.name + "' is not a kernel name");
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const Buffer& buffer = kernel_.buffers[i];
    declare(buffer);
    check(buffer->scope == Scope::kGlobal, "buffer '%" + buffer->name + "' of the kernel is not global");
    check(buffer->binding == static_cast<int>(i), "buffer '%" + buffer->name + "' expected binding " +
                                                      std::to_string(i) + ", found " +
                                                      std::to_string(buffer->binding));
    const bool bounded = buffer->below > 0 && is_integer(buffer->dtype) && !is_packed(buffer->dtype) &&
                         buffer->below <= kMostBelow && buffer->access == Access::kRead;
    check(buffer->below == 0 || bounded,
          "buffer '%" + buffer->name + "' expected integers that are only read below a number up to " +
              std::to_string(kMostBelow) + ", found " + std::string(to_string(buffer->dtype)) + " below " +
              std::to_string(buffer->below));
  }
  std::unordered_set<std::string> symbols;
  for (const std::string& symbol : kernel_.symbols) {
    check(is_identifier(symbol, true), "'$" + symbol + "' is not a symbol name");
    check(symbols.insert(symbol).second, "symbol '$" + symbol + "' is declared twice");
  }
  for (const GridAxis& axis : kernel_.grid) {  // before any variable is in scope: constants and symbols only
    if (!expr(axis.extent)) continue;
    check(axis.extent->type == kIndexType, "grid axis '" + axis.var->name +
                                               "' expected an extent of type i64, found " +
                                               to_string(axis.extent->type));
  }
  for (const GridAxis& axis : kernel_.grid) declare(axis.var);
}

void Verifier::index_in_bounds(const BufferNode& buffer, const Expr& index) {
  int64_t first = 0, last = 0;
  if (conditional_ > 0) return;
  if (index->kind == ExprKind::kRamp) {
    if (!as_const_int(index->args[0], &first)) return;
    last = first + index->stride * (index->type.lanes - 1);
  } else {
    if (!as_const_int(index, &first)) return;
    last = first;
  }
  if (std::min(first, last) >= 0 && std::max(first, last) < buffer.size) return;
  quote("index outside '%" + buffer.name + "' of " + std::to_string(buffer.size) + " elements", index);
}

std::string Verifier::load_problem(const ExprNode& e) {
  if (!buffers_.contains(e.buffer.get())) return "load from a buffer that is not declared here";
  if (e.buffer->scope == Scope::kMatrix) return "load from matrix sums '%" + e.buffer->name + "'";
  if (e.buffer->scope == Scope::kGlobal && e.buffer->access == Access::kWrite)
    return "load from write-only buffer '%" + e.buffer->name + "'";
  if (e.type.dtype != e.buffer->dtype) return "load's dtype is not the buffer's";
  Type index{DType::kI64, e.type.lanes};
  if (e.args[0]->type != index) return "expected an index of type " + to_string(index);
  if (e.args.size() == 1) {
    index_in_bounds(*e.buffer, e.args[0]);
    return {};
  }
  if (e.args[1]->type != Type{DType::kBool, e.type.lanes}) return "expected a predicate of the load's lanes";
  if (e.args[2]->type != e.type) return "expected an alternative of the load's type";
  return {};
}

std::string Verifier::binary_problem(const ExprNode& e) {
  Type type = e.args[0]->type;
  if (e.args[1]->type != type)
    return "expected operands of one type, found " + to_string(type) + " and " + to_string(e.args[1]->type);
  if (!binary_accepts(e.binary, type.dtype))
    return std::string(quernel::to_string(e.binary)) + " is not defined on " + to_string(type);
  if (is_comparison(e.binary)) type.dtype = DType::kBool;
  return e.type == type ? "" : "binary operation has the wrong type";
}

bool is_lane_reduction(BinaryOp op) {
  switch (op) {
    case BinaryOp::k_add:
    case BinaryOp::k_mul:
    case BinaryOp::k_max:
    case BinaryOp::k_min:
    case BinaryOp::k_and:
    case BinaryOp::k_or:
      return true;
    default:
      return false;
  }
}

// Whether what the rest of the verifier and the printer rely on is there.
bool is_complete(const ExprNode& e) {
  constexpr size_t kOperands[] = {0, 0, 0, 0, 1, 2, 3, 3, 1, 1, 1, 1, 1, 2, 3, 3};
  if (e.kind == ExprKind::kLoad) return e.buffer && (e.args.size() == 1 || e.args.size() == 3);
  return e.args.size() == kOperands[static_cast<size_t>(e.kind)] && (e.kind != ExprKind::kVar || e.var);
}

std::string Verifier::expr_problem(const ExprNode& e) {
  if (e.type.lanes < 1) return "no lanes";
  const Type first = e.args.empty() ? Type{} : e.args[0]->type;
  switch (e.kind) {
    case ExprKind::kConst: {
      int width = bit_width(e.type.dtype);
      return width < 64 && e.bits >> width != 0 ? "constant has bits beyond its dtype" : "";
    }
    case ExprKind::kVar:
      if (!vars_.contains(e.var.get())) return "variable is not in scope";
      return e.type == e.var->type ? "" : "variable reference has the wrong type";
    case ExprKind::kSymbol:
      if (e.symbol < 0 || static_cast<size_t>(e.symbol) >= kernel_.symbols.size())
        return "symbol is not declared";
      return e.type == kIndexType ? "" : "symbol is not i64";
    case ExprKind::kLoad:
      return load_problem(e);
    case ExprKind::kUnary:
      if (!unary_accepts(e.unary, first.dtype))
        return std::string(quernel::to_string(e.unary)) + " is not defined on " + to_string(first);
      return e.type == Type{is_predicate(e.unary) ? DType::kBool : first.dtype, first.lanes}
                 ? ""
                 : "unary operation has the wrong type";
    case ExprKind::kBinary:
      return binary_problem(e);
    case ExprKind::kMulAcc:
      if (e.args[1]->type != e.type || e.args[2]->type != e.type || first != e.type)
        return "mulacc expected operands of its type";
      return binary_accepts(BinaryOp::k_sub, e.type.dtype) ? ""
                                                           : "mulacc is not defined on " + to_string(e.type);
    case ExprKind::kSelect:
      if (first != Type{DType::kBool, e.type.lanes}) return "select expected a condition of its lanes";
      return e.args[1]->type == e.type && e.args[2]->type == e.type ? ""
                                                                    : "select expected operands of its type";
    case ExprKind::kCast:
      return e.type.lanes == first.lanes ? "" : "cast changes the lanes";
    case ExprKind::kBitcast:
      return bit_width(e.type.dtype) * e.type.lanes == bit_width(first.dtype) * first.lanes
                 ? ""
                 : "bitcast expected " + std::to_string(bit_width(e.type.dtype) * e.type.lanes) +
                       " bits, found " + std::to_string(bit_width(first.dtype) * first.lanes);
    case ExprKind::kRamp:
      return first == kIndexType && e.type.dtype == DType::kI64 && e.type.lanes > 1
                 ? ""
                 : "ramp expected a scalar i64 base";
    case ExprKind::kBroadcast:
      return first == e.type.with_lanes(1) && e.type.lanes > 1 ? ""
                                                               : "broadcast expected a scalar of its dtype";
    case ExprKind::kReduceLanes:
      if (first.lanes < 2 || e.type != first.with_lanes(1))
        return "reduce_lanes expected a vector of its dtype";
      return is_lane_reduction(e.binary) && binary_accepts(e.binary, first.dtype)
                 ? ""
                 : "reduce_lanes cannot fold with " + std::string(quernel::to_string(e.binary));
    case ExprKind::kInterleave:
      return first == e.type && e.args[1]->type == e.type && e.type.lanes % 2 == 0
                 ? ""
                 : "interleave expected vectors of its type with an even number of lanes";
    case ExprKind::kDot: {
      auto is_word = [&](const Type& type) {
        return (type.dtype == DType::kI32 || type.dtype == DType::kU32) && type.lanes == e.type.lanes;
      };
      bool halves = first.dtype == DType::kU32 && e.args[1]->type.dtype == DType::kU32;
      bool sums = is_word(e.type) || (e.type.dtype == DType::kF32 && halves);
      return sums && e.args[2]->type == e.type && is_word(first) && is_word(e.args[1]->type)
                 ? ""
                 : "dot expected words of four bytes, i32 or u32, and a sum of type i32 or two in a u32, or "
                   "words of two bf16, u32, "
                   "and a sum of type f32, all of its lanes";
    }
    case ExprKind::kDot2x2: {
      auto is_words = [](const Type& type) {
        return (type.dtype == DType::kI32 || type.dtype == DType::kU32) && type.lanes == 4;
      };
      const bool fits = is_words(first) && is_words(e.args[1]->type) && e.args[2]->type == e.type &&
                        e.type == Type{DType::kI32, 4};
      return fits ? ""
                  : "dot_2x2 expected four words of four bytes, i32 or u32, twice, and a sum of type i32x4";
    }
  }
  return "unknown expression kind";
}

bool Verifier::expr(const Expr& e) {
  if (!e) {
    report("missing expression");
    return false;
  }
  if (!checked_.insert(e.get()).second) return true;
  for (const Expr& arg : e->args)
    if (!expr(arg)) return true;
  if (!is_complete(*e)) {
    report("expression without its operands, buffer or variable");
  } else if (std::string problem = expr_problem(*e); !problem.empty()) {
    quote(problem, e);
  }
  return true;
}

void Verifier::for_loop(const StmtNode& s) {
  if (!expr(s.extent)) return;
  const std::string& name = s.var->name;
  check(s.extent->type == kIndexType, "loop '" + name + "' expected an extent of type i64");
  check(s.var->type == kIndexType, "loop variable '" + name + "' is not i64");
  int64_t extent = 0;
  bool constant = as_const_int(s.extent, &extent);
  bool needs_constant = s.axis == AxisKind::kVector || s.axis == AxisKind::kUnrolled;
  check(constant || !needs_constant,
        std::string(to_string(s.axis)) + " loop '" + name + "' expected a constant extent");
  check(!constant || extent >= 0, "loop '" + name + "' has a negative extent");
  bool may_not_run = !constant || extent <= 0;
  declare(s.var);
  conditional_ += may_not_run;
  stmt(s.body[0]);
  conditional_ -= may_not_run;
  vars_.erase(s.var.get());
}

void Verifier::store(const StmtNode& s) {
  if (!expr(s.index) || !expr(s.value)) return;
  if (s.condition) expr(s.condition);
  if (!s.buffer || !buffers_.contains(s.buffer.get()))
    return report("store to a buffer that is not declared here");
  const std::string name = "'%" + s.buffer->name + "'";
  check(s.buffer->scope != Scope::kMatrix, "store of elements to matrix sums " + name);
  check(s.buffer->scope != Scope::kGlobal || s.buffer->access != Access::kRead,
        "store to read-only buffer " + name);
  if (s.index->type.dtype != DType::kI64) quote("expected an index of type i64", s.index);
  int lanes = s.index->type.lanes;
  if (s.value->type != Type{s.buffer->dtype, lanes})
    quote("store to " + name + " expected a value of type " + to_string(Type{s.buffer->dtype, lanes}) +
              ", found " + to_string(s.value->type),
          s.value);
  if (!s.condition) return index_in_bounds(*s.buffer, s.index);
  if (s.condition->type != Type{DType::kBool, lanes})
    quote("expected a predicate of the store's lanes", s.condition);
}

void Verifier::matrix(const MatrixPlace& place, DType dtype, int64_t rows, int64_t columns, bool is_stored) {
  if (!expr(place.index)) return;
  if (!place.buffer || !buffers_.contains(place.buffer.get()))
    return report("a matrix in a buffer that is not declared here");
  const std::string name = "'%" + place.buffer->name + "'";
  if (place.index->type != kIndexType) quote("expected an index of type i64", place.index);
  check(place.buffer->scope != Scope::kMatrix && place.buffer->dtype == dtype,
        "a matrix in " + name + " expected memory of " + std::string(to_string(dtype)));
  check(place.row_stride >= 1 && place.column_stride >= 1 &&
            (place.row_stride == 1 || place.column_stride == 1),
        "a matrix in " + name + " expected strides of which one is 1");
  const bool written = place.buffer->access != Access::kRead, read = place.buffer->access != Access::kWrite;
  check(place.buffer->scope != Scope::kGlobal || (is_stored ? written : read),
        "a matrix in " + name + ", which the kernel does not " + (is_stored ? "write" : "read"));
  int64_t first = 0;
  if (conditional_ > 0 || !as_const_int(place.index, &first)) return;
  const int64_t last = first + (rows - 1) * place.row_stride + (columns - 1) * place.column_stride;
  if (first < 0 || last >= place.buffer->size)
    quote("a matrix reaches outside " + name + " of " + std::to_string(place.buffer->size) + " elements",
          place.index);
}

void Verifier::matrices(const StmtNode& s) {
  const bool multiplies = s.kind == StmtKind::kMultiplyMatrices;
  const MatrixOperands& m = *s.matrices;
  if (!buffers_.contains(s.buffer.get())) return report("matrix sums that are not declared here");
  check(m.rows >= 1 && m.columns >= 1 && (m.steps >= 1) == multiplies, "a matrix without elements");
  const DType sums = s.buffer->dtype;
  check(s.buffer->scope == Scope::kMatrix && (sums == DType::kF32 || sums == DType::kI32) &&
            s.buffer->size == m.rows * m.columns,
        "'%" + s.buffer->name + "' expected matrix sums of f32 or i32 with " +
            std::to_string(m.rows * m.columns) + " elements");
  if (!multiplies) return matrix(m.a, sums, m.rows, m.columns, true);
  const DType dtype = m.b.buffer->dtype;
  check(sums_of_matrices(dtype) == sums, "a matrix in '%" + m.b.buffer->name + "' expected memory of " +
                                             (sums == DType::kF32 ? "f16 or bf16" : "i8 or u8"));
  matrix(m.a, dtype, m.rows, m.steps, false);
  matrix(m.b, dtype, m.steps, m.columns, false);
}

void Verifier::stmt(const Stmt& s) {
  if (!s) return report("missing statement");
  checked_.clear();
  switch (s->kind) {
    case StmtKind::kBlock: {
      std::vector<const VarNode*> lets;
      std::vector<const BufferNode*> allocs;
      for (const Stmt& child : s->body) {
        stmt(child);
        if (child && child->kind == StmtKind::kLet) lets.push_back(child->var.get());
        if (child && child->kind == StmtKind::kAlloc) allocs.push_back(child->buffer.get());
      }
      for (const VarNode* var : lets) vars_.erase(var);
      for (const BufferNode* buffer : allocs) buffers_.erase(buffer);
      return;
    }
    case StmtKind::kFor:
      return for_loop(*s);
    case StmtKind::kIf:
      if (expr(s->condition) && s->condition->type != Type{DType::kBool, 1})
        quote("expected a condition of type bool", s->condition);
      ++conditional_;
      for (const Stmt& branch : s->body) stmt(branch);
      --conditional_;
      return;
    case StmtKind::kLet:
      if (!expr(s->value)) return declare(s->var);
      check(s->value->type == s->var->type, "variable '" + s->var->name + "' expected a value of type " +
                                                to_string(s->var->type) + ", found " +
                                                to_string(s->value->type));
      return declare(s->var);
    case StmtKind::kStore:
      return store(*s);
    case StmtKind::kAlloc:
      check(s->buffer->scope != Scope::kGlobal, "alloc of global buffer '%" + s->buffer->name + "'");
      return declare(s->buffer);
    case StmtKind::kPrefetch:
      if (!expr(s->index)) return;
      check(s->buffer->scope == Scope::kGlobal && buffers_.contains(s->buffer.get()),
            "prefetch of '%" + s->buffer->name + "', which is no global buffer of the kernel");
      if (s->index->type != kIndexType) quote("expected an index of type i64", s->index);
      return;
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
      return matrices(*s);
    case StmtKind::kBarrier:
      return;
  }
}

Status Verifier::run() {
  header();
  if (!kernel_.body)
    report("kernel has no body");
  else
    stmt(kernel_.body);
  return errors_.empty() ? Status() : Status(std::move(errors_));
}

}  // namespace

Status verify(const Kernel& kernel) { return Verifier(kernel).run(); }

}  // namespace quernel::loop
