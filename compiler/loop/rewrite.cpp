#include "loop/rewrite.h"

#include "support/diagnostic.h"

namespace quernel::loop {

Expr with_args(const Expr& e, std::vector<Expr> args) {
  if (args == e->args) return e;
  switch (e->kind) {
    case ExprKind::kConst:
    case ExprKind::kVar:
    case ExprKind::kSymbol:
      return e;
    case ExprKind::kLoad:
      if (args.size() == 1) return load(e->buffer, args[0], args[0]->type.lanes);
      return load_guarded(e->buffer, args[0], args[1], args[2]);
    case ExprKind::kUnary:
      return unary(e->unary, args[0]);
    case ExprKind::kBinary:
      return binary(e->binary, args[0], args[1]);
    case ExprKind::kMulAcc:
      return mul_acc(args[0], args[1], args[2]);
    case ExprKind::kSelect:
      return select(args[0], args[1], args[2]);
    case ExprKind::kCast:
      return cast(e->type.dtype, args[0]);
    case ExprKind::kBitcast:
      return bitcast(e->type, args[0]);
    case ExprKind::kRamp:
      return ramp(args[0], e->stride, e->type.lanes);
    case ExprKind::kBroadcast:
      return broadcast(args[0], e->type.lanes);
    case ExprKind::kReduceLanes:
      return reduce_lanes(e->binary, args[0]);
    case ExprKind::kInterleave:
      return interleave(e->stride != 0, args[0], args[1]);
    case ExprKind::kDot:
      return dot(args[0], args[1], args[2]);
    case ExprKind::kDot2x2:
      return dot_2x2(args[0], args[1], args[2]);
  }
  QUERNEL_UNREACHABLE("expression kind is not handled");
}

Stmt with_places(const StmtNode& s, const Buffer& sums,
                 const std::function<MatrixPlace(const MatrixPlace&)>& place) {
  MatrixOperands operands = *s.matrices;
  operands.a = place(operands.a);
  if (s.kind == StmtKind::kStoreMatrix) return store_matrix(sums, std::move(operands));
  operands.b = place(operands.b);
  return multiply_matrices(sums, std::move(operands));
}

Expr Substitution::operator()(const Expr& e) {
  if (!e) return nullptr;
  if (e->kind == ExprKind::kVar) {
    for (const Substitution* s = this; s; s = s->outer_)
      if (auto found = s->vars_.find(e->var.get()); found != s->vars_.end()) return found->second;
    return e;
  }
  if (e->args.empty()) return e;
  if (auto found = memo_.find(e.get()); found != memo_.end()) return found->second;
  std::vector<Expr> args;
  args.reserve(e->args.size());
  for (const Expr& arg : e->args) args.push_back((*this)(arg));
  Expr result;
  if (e->kind == ExprKind::kLoad && (*this)(e->buffer) != e->buffer) {
    Buffer buffer = (*this)(e->buffer);
    result = args.size() == 1 ? load(buffer, args[0], args[0]->type.lanes)
                              : load_guarded(buffer, args[0], args[1], args[2]);
  } else {
    result = with_args(e, std::move(args));
  }
  kept_.push_back(e);
  return memo_[e.get()] = result;
}

Buffer Substitution::operator()(const Buffer& buffer) const {
  for (const Substitution* s = this; s; s = s->outer_)
    if (auto found = s->buffers_.find(buffer.get()); found != s->buffers_.end()) return found->second;
  return buffer;
}

namespace {
void collect_names(const Stmt& stmt, std::unordered_set<std::string>& names) {
  if (stmt->var) names.insert(stmt->var->name);
  if (stmt->kind == StmtKind::kAlloc) names.insert(stmt->buffer->name);
  for (const Stmt& child : stmt->body) collect_names(child, names);
}
}  // namespace

FreshNames::FreshNames(const Kernel& kernel) {
  for (const Buffer& buffer : kernel.buffers) used_.insert(buffer->name);
  for (const GridAxis& axis : kernel.grid) used_.insert(axis.var->name);
  if (kernel.body) collect_names(kernel.body, used_);
}

std::string FreshNames::like(const std::string& name) {
  int& next = next_[name];
  std::string candidate;
  do candidate = name + "_" + std::to_string(++next);
  while (used_.contains(candidate));
  used_.insert(candidate);
  return candidate;
}

Var FreshNames::var(const std::string& name, Type type) { return make_var(like(name), type); }

Buffer FreshNames::buffer(const BufferNode& model) {
  BufferNode copy = model;
  copy.name = like(model.name);
  return std::make_shared<const BufferNode>(std::move(copy));
}

Var make_var(std::string name, Type type) {
  return std::make_shared<const VarNode>(VarNode{std::move(name), type});
}

}  // namespace quernel::loop
