#include "loop/ir.h"

#include "loop/evaluate_scalar.h"
#include "loop/fold.h"
#include "support/diagnostic.h"

namespace quernel::loop {
namespace {

Expr make(ExprKind kind, Type type, std::vector<Expr> args = {}) {
  ExprNode node;
  node.kind = kind;
  node.type = type;
  node.args = std::move(args);
  return std::make_shared<const ExprNode>(std::move(node));
}

// A scalar beside a vector is meant for every lane.
Expr to_lanes(Expr e, int lanes) { return e->type.lanes == lanes ? e : broadcast(std::move(e), lanes); }

int widest(const std::vector<Expr>& args) {
  int lanes = 1;
  for (const Expr& e : args) lanes = std::max(lanes, e->type.lanes);
  return lanes;
}

// The scalars behind vector operands that all repeat one value, or nothing.
std::vector<Expr> uniform_values(const std::vector<Expr>& args) {
  if (widest(args) == 1) return {};
  std::vector<Expr> scalars;
  for (const Expr& e : args) {
    Expr scalar = uniform_value(e);
    if (!scalar) return {};
    scalars.push_back(std::move(scalar));
  }
  return scalars;
}

bool is_const(const Expr& e) { return e->kind == ExprKind::kConst; }

}  // namespace

Expr const_bits(Type type, uint64_t bits) {
  ExprNode node;
  node.kind = ExprKind::kConst;
  node.type = type;
  node.bits = bits;
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr const_index(int64_t value) { return const_bits(kIndexType, static_cast<uint64_t>(value)); }
Expr const_int(DType dtype, int64_t value, int lanes) {
  return const_bits({dtype, lanes}, int_to_bits(dtype, value));
}
Expr const_float(DType dtype, double value, int lanes) {
  return const_bits({dtype, lanes}, double_to_bits(dtype, value));
}

Expr var_ref(const Var& var) {
  QUERNEL_ASSERT(var != nullptr);
  ExprNode node;
  node.kind = ExprKind::kVar;
  node.type = var->type;
  node.var = var;
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr symbol_ref(int symbol) {
  ExprNode node;
  node.kind = ExprKind::kSymbol;
  node.type = kIndexType;
  node.symbol = symbol;
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr load(const Buffer& buffer, Expr index, int lanes) {
  QUERNEL_ASSERT(buffer != nullptr && index->type.dtype == DType::kI64);
  QUERNEL_ASSERT(lanes == 1 || lanes == index->type.lanes);
  ExprNode node;
  node.kind = ExprKind::kLoad;
  node.type = {buffer->dtype, index->type.lanes};
  node.buffer = buffer;
  node.args = {std::move(index)};
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr load_guarded(const Buffer& buffer, Expr index, Expr predicate, Expr otherwise) {
  QUERNEL_ASSERT(buffer != nullptr && index->type.dtype == DType::kI64);
  QUERNEL_ASSERT(predicate->type.dtype == DType::kBool && otherwise->type.dtype == buffer->dtype);
  int lanes = widest({index, predicate, otherwise});
  if (is_const_bool(predicate, true)) return load(buffer, to_lanes(std::move(index), lanes), lanes);
  if (is_const_bool(predicate, false)) return to_lanes(std::move(otherwise), lanes);
  ExprNode node;
  node.kind = ExprKind::kLoad;
  node.type = {buffer->dtype, lanes};
  node.buffer = buffer;
  node.args = {to_lanes(std::move(index), lanes), to_lanes(std::move(predicate), lanes),
               to_lanes(std::move(otherwise), lanes)};
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr unary(UnaryOp op, Expr x) {
  QUERNEL_ASSERT(unary_accepts(op, x->type.dtype));
  if (Expr folded = fold_unary(op, x)) return folded;
  if (x->kind == ExprKind::kBroadcast) return broadcast(unary(op, x->args[0]), x->type.lanes);
  ExprNode node;
  node.kind = ExprKind::kUnary;
  node.type = {is_predicate(op) ? DType::kBool : x->type.dtype, x->type.lanes};
  node.unary = op;
  node.args = {std::move(x)};
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr binary(BinaryOp op, Expr a, Expr b) {
  QUERNEL_ASSERT(a->type.dtype == b->type.dtype && binary_accepts(op, a->type.dtype));
  int lanes = std::max(a->type.lanes, b->type.lanes);
  a = to_lanes(std::move(a), lanes);
  b = to_lanes(std::move(b), lanes);
  if (Expr folded = fold_binary(op, a, b)) return folded;
  if (std::vector<Expr> scalars = uniform_values({a, b}); !scalars.empty() && !(is_const(a) && is_const(b)))
    return broadcast(binary(op, scalars[0], scalars[1]), lanes);
  ExprNode node;
  node.kind = ExprKind::kBinary;
  node.type = {is_comparison(op) ? DType::kBool : a->type.dtype, lanes};
  node.binary = op;
  node.args = {std::move(a), std::move(b)};
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr mul_acc(Expr a, Expr b, Expr c) {
  QUERNEL_ASSERT(a->type.dtype == b->type.dtype && a->type.dtype == c->type.dtype);
  int lanes = widest({a, b, c});
  if (std::vector<Expr> scalars = uniform_values({a, b, c}); !scalars.empty())
    return broadcast(mul_acc(scalars[0], scalars[1], scalars[2]), lanes);
  Type type = a->type.with_lanes(lanes);
  return make(ExprKind::kMulAcc, type, {to_lanes(a, lanes), to_lanes(b, lanes), to_lanes(c, lanes)});
}

Expr select(Expr condition, Expr a, Expr b) {
  QUERNEL_ASSERT(condition->type.dtype == DType::kBool && a->type.dtype == b->type.dtype);
  int lanes = widest({condition, a, b});
  if (is_const_bool(condition, true) || same_leaf(a, b)) return to_lanes(std::move(a), lanes);
  if (is_const_bool(condition, false)) return to_lanes(std::move(b), lanes);
  if (std::vector<Expr> scalars = uniform_values({condition, a, b}); !scalars.empty())
    return broadcast(select(scalars[0], scalars[1], scalars[2]), lanes);
  Type type = a->type.with_lanes(lanes);
  return make(ExprKind::kSelect, type, {to_lanes(condition, lanes), to_lanes(a, lanes), to_lanes(b, lanes)});
}

Expr cast(DType dtype, Expr x) {
  Type type{dtype, x->type.lanes};
  if (x->type == type) return x;
  if (is_const(x)) return const_bits(type, evaluate_cast(x->type.dtype, dtype, x->bits));
  if (x->kind == ExprKind::kBroadcast) return broadcast(cast(dtype, x->args[0]), type.lanes);
  return make(ExprKind::kCast, type, {std::move(x)});
}

Expr bitcast(Type type, Expr x) {
  Type from = x->type;
  QUERNEL_ASSERT(bit_width(type.dtype) * type.lanes == bit_width(from.dtype) * from.lanes);
  if (from == type) return x;
  if (from.lanes == type.lanes) {
    if (is_const(x)) return const_bits(type, x->bits);
    if (x->kind == ExprKind::kBroadcast)
      return broadcast(bitcast(type.with_lanes(1), x->args[0]), type.lanes);
  }
  return make(ExprKind::kBitcast, type, {std::move(x)});
}

Expr ramp(Expr base, int64_t stride, int lanes) {
  QUERNEL_ASSERT(base->type == kIndexType && lanes >= 1);
  if (lanes == 1) return base;
  if (stride == 0) return broadcast(std::move(base), lanes);
  ExprNode node;
  node.kind = ExprKind::kRamp;
  node.type = {DType::kI64, lanes};
  node.stride = stride;
  node.args = {std::move(base)};
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr broadcast(Expr x, int lanes) {
  QUERNEL_ASSERT(x->type.lanes == 1 && lanes >= 1);
  if (lanes == 1) return x;
  Type type = x->type.with_lanes(lanes);
  if (is_const(x)) return const_bits(type, x->bits);
  return make(ExprKind::kBroadcast, type, {std::move(x)});
}

Expr reduce_lanes(BinaryOp op, Expr x) {
  if (x->type.lanes == 1) return x;
  bool idempotent =
      op == BinaryOp::k_max || op == BinaryOp::k_min || op == BinaryOp::k_and || op == BinaryOp::k_or;
  if (Expr scalar = uniform_value(x); scalar && idempotent) return scalar;
  ExprNode node;
  node.kind = ExprKind::kReduceLanes;
  node.type = x->type.with_lanes(1);
  node.binary = op;
  node.args = {std::move(x)};
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr interleave(bool upper, Expr a, Expr b) {
  QUERNEL_ASSERT(a->type == b->type && a->type.lanes % 2 == 0);
  ExprNode node;
  node.kind = ExprKind::kInterleave;
  node.type = a->type;
  node.stride = upper;
  node.args = {std::move(a), std::move(b)};
  return std::make_shared<const ExprNode>(std::move(node));
}

Expr dot(Expr a, Expr b, Expr c) {
  auto is_word = [](const Expr& e) { return e->type.dtype == DType::kI32 || e->type.dtype == DType::kU32; };
  DType sum = c->type.dtype;
  QUERNEL_ASSERT(is_word(a) && is_word(b) && (is_word(c) || sum == DType::kF32));
  int lanes = widest({a, b, c});
  if (std::vector<Expr> scalars = uniform_values({a, b, c}); !scalars.empty())
    return broadcast(dot(scalars[0], scalars[1], scalars[2]), lanes);
  return make(ExprKind::kDot, {sum, lanes}, {to_lanes(a, lanes), to_lanes(b, lanes), to_lanes(c, lanes)});
}

Expr dot_2x2(Expr a, Expr b, Expr c) {
  QUERNEL_ASSERT(a->type.lanes == 4 && b->type.lanes == 4 && (c->type == Type{DType::kI32, 4}));
  return make(ExprKind::kDot2x2, {DType::kI32, 4}, {std::move(a), std::move(b), std::move(c)});
}

bool as_const_int(const Expr& e, int64_t* value) {
  if (!e || e->kind != ExprKind::kConst || is_float(e->type.dtype)) return false;
  *value = bits_to_int(e->type.dtype, e->bits);
  return true;
}

// ---- statements

Stmt block(std::vector<Stmt> body) {
  StmtNode node;
  node.kind = StmtKind::kBlock;
  std::erase(body, nullptr);
  node.body = std::move(body);
  return std::make_shared<const StmtNode>(std::move(node));
}

Stmt for_loop(const Var& var, Expr extent, AxisKind axis, Stmt body) {
  QUERNEL_ASSERT(var->type == kIndexType && extent->type == kIndexType && body != nullptr);
  StmtNode node;
  node.kind = StmtKind::kFor;
  node.var = var;
  node.extent = std::move(extent);
  node.axis = axis;
  node.body = {std::move(body)};
  return std::make_shared<const StmtNode>(std::move(node));
}

Stmt if_then(Expr condition, Stmt then, Stmt otherwise) {
  QUERNEL_ASSERT(condition->type.dtype == DType::kBool && then != nullptr);
  StmtNode node;
  node.kind = StmtKind::kIf;
  node.condition = std::move(condition);
  node.body = {std::move(then)};
  if (otherwise) node.body.push_back(std::move(otherwise));
  return std::make_shared<const StmtNode>(std::move(node));
}

Stmt let(const Var& var, Expr value) {
  QUERNEL_ASSERT(var->type == value->type);
  StmtNode node;
  node.kind = StmtKind::kLet;
  node.var = var;
  node.value = std::move(value);
  return std::make_shared<const StmtNode>(std::move(node));
}

Stmt store(const Buffer& buffer, Expr index, Expr value, Expr predicate) {
  QUERNEL_ASSERT(buffer != nullptr && index->type.dtype == DType::kI64 && value->type.dtype == buffer->dtype);
  StmtNode node;
  node.kind = StmtKind::kStore;
  node.buffer = buffer;
  int lanes = index->type.lanes;
  node.index = std::move(index);
  node.value = to_lanes(std::move(value), lanes);
  if (predicate && !is_const_bool(predicate, true)) node.condition = to_lanes(std::move(predicate), lanes);
  return std::make_shared<const StmtNode>(std::move(node));
}

Stmt alloc(const Buffer& buffer) {
  QUERNEL_ASSERT(buffer != nullptr && buffer->scope != Scope::kGlobal);
  StmtNode node;
  node.kind = StmtKind::kAlloc;
  node.buffer = buffer;
  return std::make_shared<const StmtNode>(std::move(node));
}

Stmt prefetch(const Buffer& buffer, Expr index) {
  QUERNEL_ASSERT(buffer != nullptr);
  StmtNode node;
  node.kind = StmtKind::kPrefetch;
  node.buffer = buffer;
  node.index = std::move(index);
  return std::make_shared<const StmtNode>(std::move(node));
}

namespace {

Stmt matrix_statement(StmtKind kind, const Buffer& sums, MatrixOperands operands) {
  QUERNEL_ASSERT(sums != nullptr && sums->scope == Scope::kMatrix && operands.a.buffer != nullptr);
  StmtNode node;
  node.kind = kind;
  node.buffer = sums;
  node.matrices = std::make_shared<const MatrixOperands>(std::move(operands));
  return std::make_shared<const StmtNode>(std::move(node));
}

}  // namespace

std::optional<DType> sums_of_matrices(DType dtype) {
  if (is_byte(dtype)) return DType::kI32;
  if (dtype == DType::kF16 || dtype == DType::kBF16) return DType::kF32;
  return std::nullopt;
}

Stmt multiply_matrices(const Buffer& sums, MatrixOperands operands) {
  QUERNEL_ASSERT(operands.b.buffer != nullptr);
  return matrix_statement(StmtKind::kMultiplyMatrices, sums, std::move(operands));
}

Stmt store_matrix(const Buffer& sums, MatrixOperands target) {
  return matrix_statement(StmtKind::kStoreMatrix, sums, std::move(target));
}

Stmt barrier() {
  StmtNode node;
  node.kind = StmtKind::kBarrier;
  return std::make_shared<const StmtNode>(std::move(node));
}

}  // namespace quernel::loop
