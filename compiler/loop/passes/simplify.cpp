// The simplify pass: canonical expressions (simplify_expr.h) through all statements, then a backward sweep
// that drops what nothing uses. Relies on names being unique: a fact about a variable holds wherever it is in
// scope.
#include <unordered_set>

#include "loop/fold.h"
#include "loop/passes.h"
#include "loop/passes/simplify_expr.h"
#include "loop/rewrite.h"
#include "support/diagnostic.h"

namespace quernel::loop {
namespace {

// Index and condition variables up to this size are replaced by their values, which lets sums and guards be
// decided.
constexpr int kMaxInlinedSize = 64;

Interval loop_range(Interval extent) { return {0, std::max<int64_t>(extent.hi - 1, 0)}; }

class StmtSimplifier {
 public:
  void grid(GridAxis& axis);
  Stmt run(const Stmt& s);  // null when nothing is left

 private:
  Stmt run_block(const StmtNode& s);
  Stmt run_for(const StmtNode& s);
  Stmt run_if(const StmtNode& s);
  Stmt run_let(const StmtNode& s);
  Stmt run_store(const StmtNode& s);
  bool inlines(const Expr& value) const;

  ExprSimplifier expr_;
};

void StmtSimplifier::grid(GridAxis& axis) {
  axis.extent = expr_(axis.extent);
  int64_t extent = 0;
  if (as_const_int(axis.extent, &extent) && extent == 1) return expr_.replace(axis.var, const_index(0));
  expr_.bound(axis.var, loop_range(expr_.range(axis.extent)));
}

Stmt StmtSimplifier::run(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::kBlock:
      return run_block(*s);
    case StmtKind::kFor:
      return run_for(*s);
    case StmtKind::kIf:
      return run_if(*s);
    case StmtKind::kLet:
      return run_let(*s);
    case StmtKind::kStore:
      return run_store(*s);
    case StmtKind::kPrefetch:
      return prefetch(s->buffer, expr_(s->index));
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
      return with_places(*s, s->buffer, [&](MatrixPlace place) {
        place.index = expr_(place.index);
        return place;
      });
    case StmtKind::kAlloc:
    case StmtKind::kBarrier:
      return s;
  }
  QUERNEL_UNREACHABLE("statement kind is not handled");
}

Stmt StmtSimplifier::run_block(const StmtNode& s) {
  std::vector<Stmt> body;
  for (const Stmt& child : s.body) {
    Stmt simple = run(child);
    if (!simple) continue;
    if (simple->kind == StmtKind::kBlock)  // names are unique, so that a wider scope changes nothing
      body.insert(body.end(), simple->body.begin(), simple->body.end());
    else
      body.push_back(std::move(simple));
  }
  return body.empty() ? nullptr : block(std::move(body));
}

Stmt StmtSimplifier::run_for(const StmtNode& s) {
  Expr extent = expr_(s.extent);
  int64_t count = 0;
  if (as_const_int(extent, &count)) {
    if (count <= 0) return nullptr;
    if (count == 1) {
      expr_.replace(s.var, const_index(0));
      return run(s.body[0]);
    }
  }
  expr_.bound(s.var, loop_range(expr_.range(extent)));
  Stmt body = run(s.body[0]);
  return body ? for_loop(s.var, std::move(extent), s.axis, std::move(body)) : nullptr;
}

Stmt StmtSimplifier::run_if(const StmtNode& s) {
  Expr condition = expr_(s.condition);
  bool has_else = s.body.size() > 1;
  if (is_const_bool(condition, true)) return run(s.body[0]);
  if (is_const_bool(condition, false)) return has_else ? run(s.body[1]) : nullptr;
  Stmt then = run(s.body[0]);
  Stmt otherwise = has_else ? run(s.body[1]) : nullptr;
  if (!then && !otherwise) return nullptr;
  if (!then) return if_then(expr_(unary(UnaryOp::k_not, condition)), std::move(otherwise));
  return if_then(std::move(condition), std::move(then), std::move(otherwise));
}

bool StmtSimplifier::inlines(const Expr& value) const {
  const Expr& core = value->kind == ExprKind::kBroadcast ? value->args[0] : value;
  if (core->args.empty()) return true;  // constants, variables, symbols
  if (expr_.reads_memory(value)) return false;
  bool decides = value->type.dtype == DType::kI64 || value->type.dtype == DType::kBool;
  return decides && expr_.size(value) <= kMaxInlinedSize;
}

Stmt StmtSimplifier::run_let(const StmtNode& s) {
  Expr value = expr_(s.value);
  if (inlines(value)) {
    expr_.replace(s.var, value);
    return nullptr;
  }
  if (value->type.dtype == DType::kI64) expr_.bound(s.var, expr_.range(value));
  return let(s.var, std::move(value));
}

Stmt StmtSimplifier::run_store(const StmtNode& s) {
  Expr index = expr_(s.index), value = expr_(s.value);
  Expr predicate = expr_(s.condition);
  if (predicate && is_const_bool(predicate, false)) return nullptr;
  if (predicate && is_const_bool(predicate, true)) predicate = nullptr;
  bool in_registers = s.buffer->scope == Scope::kRegister && expr_.range(index).within(0, s.buffer->size - 1);
  if (predicate && in_registers) {  // an unconditional write keeps the buffer in registers
    value = expr_(select(predicate, value, load(s.buffer, index, index->type.lanes)));
    predicate = nullptr;
  }
  return store(s.buffer, std::move(index), std::move(value), std::move(predicate));
}

// Drops Lets and allocs that nothing after them uses, and the loops and branches which that empties. Walks
// backward, so that every use is seen before its definition.
class UnusedRemoval {
 public:
  Stmt run(const Stmt& s);

 private:
  void use(const Expr& e);

  std::unordered_set<const ExprNode*> seen_;
  std::unordered_set<const VarNode*> vars_;
  std::unordered_set<const BufferNode*> buffers_;
};

void UnusedRemoval::use(const Expr& e) {
  if (!e || !seen_.insert(e.get()).second) return;
  if (e->var) vars_.insert(e->var.get());
  if (e->buffer) buffers_.insert(e->buffer.get());
  for (const Expr& arg : e->args) use(arg);
}

Stmt UnusedRemoval::run(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::kBlock: {
      std::vector<Stmt> body;
      for (auto child = s->body.rbegin(); child != s->body.rend(); ++child)
        if (Stmt kept = run(*child)) body.push_back(std::move(kept));
      return body.empty() ? nullptr : block({body.rbegin(), body.rend()});
    }
    case StmtKind::kFor: {
      Stmt body = run(s->body[0]);
      if (!body) return nullptr;
      use(s->extent);
      return for_loop(s->var, s->extent, s->axis, std::move(body));
    }
    case StmtKind::kIf: {
      Stmt then = run(s->body[0]);
      Stmt otherwise = s->body.size() > 1 ? run(s->body[1]) : nullptr;
      if (!then && !otherwise) return nullptr;
      use(s->condition);
      return if_then(s->condition, then ? then : block({}), otherwise);
    }
    case StmtKind::kLet:
      if (!vars_.contains(s->var.get())) return nullptr;
      use(s->value);
      return s;
    case StmtKind::kStore:
      buffers_.insert(s->buffer.get());
      use(s->index);
      use(s->value);
      use(s->condition);
      return s;
    case StmtKind::kAlloc:
      return buffers_.contains(s->buffer.get()) ? s : nullptr;
    case StmtKind::kPrefetch:
      use(s->index);
      return s;
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
      buffers_.insert(s->buffer.get());
      for (const MatrixPlace* place : {&s->matrices->a, &s->matrices->b}) {
        buffers_.insert(place->buffer.get());
        use(place->index);
      }
      return s;
    case StmtKind::kBarrier:
      return s;
  }
  QUERNEL_UNREACHABLE("statement kind is not handled");
}

}  // namespace

void simplify(Kernel& kernel) {
  StmtSimplifier simplifier;
  for (GridAxis& axis : kernel.grid) simplifier.grid(axis);
  Stmt body = simplifier.run(kernel.body);
  if (body) body = UnusedRemoval().run(body);
  if (!body) body = block({});
  kernel.body = body->kind == StmtKind::kBlock ? body : block({body});
}

}  // namespace quernel::loop
