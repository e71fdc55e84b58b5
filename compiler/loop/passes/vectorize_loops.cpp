// The vectorize_loops pass, innermost loops first. A loop that cannot become vectors becomes serial: correct,
// slower.
#include <unordered_map>

#include "loop/fold.h"
#include "loop/passes.h"
#include "loop/passes/simplify_expr.h"
#include "loop/rewrite.h"
#include "support/diagnostic.h"

namespace quernel::loop {
namespace {

// Rewrites the body of one vector loop, all iterations at once. `failed` once it met something that must stay
// a loop; its result is worthless then.
class LoopVectorizer {
 public:
  LoopVectorizer(const Var& var, int lanes, FreshNames& names, ExprSimplifier& simplify)
      : lanes_(lanes), names_(names), simplify_(simplify) {
    wide_vars_[var.get()] = ramp(const_index(0), 1, lanes);
  }
  Stmt stmt(const Stmt& s);
  bool failed() const { return failed_; }
  // Iterations touch different elements of everything the body writes, as far as can be seen. Lowering
  // promises it for vector loops; this catches sums over lanes and shifted copies.
  bool independent();

 private:
  struct Accesses {
    std::vector<Expr> loads, stores;  // indices, widened
  };

  Expr expr(const Expr& e);
  Expr load(const ExprNode& e);
  Expr private_index(const Expr& index);
  Expr masked(const Expr& predicate);
  Stmt store(const StmtNode& s);
  Stmt condition(const StmtNode& s);
  Stmt under_mask(const Stmt& s, const Expr& condition);
  Stmt widen_let(const StmtNode& s);
  Stmt widen_alloc(const StmtNode& s);
  bool collide(const Expr& a, const Expr& b);
  Stmt fail() {
    failed_ = true;
    return block({});
  }

  int lanes_;
  FreshNames& names_;
  ExprSimplifier& simplify_;
  bool failed_ = false;
  Expr mask_;  // lanes that execute, null: all
  std::unordered_map<const VarNode*, Expr> wide_vars_;
  struct Private {  // allocated in the loop: `lanes` elements for each
    Buffer buffer;
    Expr mask;  // lanes that the allocation is for: nobody ever looks at the others
  };
  std::unordered_map<const BufferNode*, Private> private_buffers_;
  std::unordered_map<const ExprNode*, Expr> memo_;  // under the current mask
  std::vector<Buffer> shared_;                      // keys of accesses_ in the order met
  std::unordered_map<const BufferNode*, Accesses> accesses_;
};

bool reads_memory(const Expr& e, std::unordered_set<const ExprNode*>& seen) {
  if (!seen.insert(e.get()).second) return false;
  if (e->kind == ExprKind::kLoad) return true;
  for (const Expr& arg : e->args)
    if (reads_memory(arg, seen)) return true;
  return false;
}

// Scalars stay scalars where no lane matters; vectors otherwise.
Expr LoopVectorizer::expr(const Expr& e) {
  if (!e || failed_) return e;
  if (e->type.lanes > 1) {  // the body has vectors already
    fail();
    return e;
  }
  if (e->kind == ExprKind::kVar) {
    auto found = wide_vars_.find(e->var.get());
    return found == wide_vars_.end() ? e : found->second;
  }
  if (e->args.empty()) return e;
  if (auto found = memo_.find(e.get()); found != memo_.end()) return found->second;
  Expr result;
  if (e->kind == ExprKind::kLoad) {
    result = load(*e);
  } else {
    std::vector<Expr> args;
    for (const Expr& arg : e->args) args.push_back(expr(arg));
    if (failed_) return e;
    bool widened_bitcast = e->kind == ExprKind::kBitcast && args[0]->type.lanes > 1;
    result = widened_bitcast ? bitcast(e->type.with_lanes(lanes_), args[0]) : with_args(e, std::move(args));
  }
  return memo_[e.get()] = result;
}

// Element `index` of a buffer that every lane has its own of.
Expr LoopVectorizer::private_index(const Expr& index) {
  return simplify_(index * const_index(lanes_) + ramp(const_index(0), 1, lanes_));
}

Expr LoopVectorizer::masked(const Expr& predicate) {
  if (!mask_) return predicate;
  return predicate ? binary(BinaryOp::k_and, mask_, predicate) : mask_;
}

Expr LoopVectorizer::load(const ExprNode& e) {
  Expr index = expr(e.args[0]);
  Expr predicate = e.args.size() == 3 ? expr(e.args[1]) : nullptr;
  Expr otherwise = e.args.size() == 3 ? expr(e.args[2]) : const_bits({e.buffer->dtype, 1}, 0);
  if (failed_) return index;
  Buffer buffer = e.buffer;
  if (auto found = private_buffers_.find(buffer.get()); found != private_buffers_.end()) {
    buffer = found->second.buffer;
    index = private_index(index);
  } else {
    index = simplify_(index);
    if (!accesses_.contains(buffer.get())) shared_.push_back(buffer);
    accesses_[buffer.get()].loads.push_back(index);
  }
  if (Expr scalar = uniform_value(index)) index = scalar;
  bool uniform =
      index->type.lanes == 1 && (!predicate || predicate->type.lanes == 1) && otherwise->type.lanes == 1;
  Expr guard = predicate;
  bool harmless =
      buffer->scope == Scope::kRegister && simplify_.range(simplify_(index)).within(0, buffer->size - 1);
  if (harmless) {                 // lanes that do not run may read registers, nobody looks at what they get
  } else if (mask_ && uniform) {  // one element for all lanes: read it if any lane runs
    Expr any = reduce_lanes(BinaryOp::k_or, mask_);
    guard = predicate ? binary(BinaryOp::k_and, any, predicate) : any;
  } else if (mask_) {
    guard = masked(predicate);
  }
  return guard ? load_guarded(buffer, index, guard, otherwise) : loop::load(buffer, index, index->type.lanes);
}

Stmt LoopVectorizer::store(const StmtNode& s) {
  Expr index = expr(s.index), value = expr(s.value), predicate = expr(s.condition);
  if (failed_) return fail();
  Buffer buffer = s.buffer;
  if (auto found = private_buffers_.find(buffer.get()); found != private_buffers_.end()) {
    buffer = found->second.buffer;
    index = private_index(index);
    // Keeping what other lanes had would make each vector wait for the one before.
    if (mask_ != found->second.mask) predicate = masked(predicate);
  } else {
    predicate = masked(predicate);
    index = simplify_(index);
    if (uniform_value(index)) return fail();  // lanes would overwrite or accumulate into one element
    if (!accesses_.contains(buffer.get())) shared_.push_back(buffer);
    accesses_[buffer.get()].stores.push_back(index);
  }
  return loop::store(buffer, std::move(index), std::move(value), std::move(predicate));
}

Stmt LoopVectorizer::under_mask(const Stmt& s, const Expr& condition) {
  std::unordered_map<const ExprNode*, Expr> outer_memo;
  outer_memo.swap(memo_);
  Expr outer_mask = mask_;
  mask_ = masked(condition);
  Stmt result = stmt(s);
  mask_ = outer_mask;
  memo_.swap(outer_memo);
  return result;
}

Stmt LoopVectorizer::condition(const StmtNode& s) {
  Expr holds = expr(s.condition);
  if (failed_) return fail();
  if (holds->type.dtype == DType::kBool && holds->type.lanes > 1) holds = simplify_(holds);
  Stmt otherwise = s.body.size() > 1 ? s.body[1] : nullptr;
  if (Expr scalar = uniform_value(holds))
    return if_then(scalar, stmt(s.body[0]), otherwise ? stmt(otherwise) : nullptr);
  std::vector<Stmt> body;
  std::unordered_set<const ExprNode*> seen;
  if (reads_memory(s.condition, seen)) {  // stores in the branches must not change it
    Var mask = names_.var("mask", holds->type);
    body.push_back(let(mask, holds));
    holds = var_ref(mask);
  }
  body.push_back(under_mask(s.body[0], holds));
  if (otherwise) body.push_back(under_mask(otherwise, unary(UnaryOp::k_not, holds)));
  return block(std::move(body));
}

Stmt LoopVectorizer::widen_let(const StmtNode& s) {
  Expr value = expr(s.value);
  if (failed_) return fail();
  if (Expr scalar = uniform_value(value)) return let(s.var, scalar);
  Var var = make_var(s.var->name, value->type);
  wide_vars_[s.var.get()] = var_ref(var);
  return let(var, std::move(value));
}

Stmt LoopVectorizer::widen_alloc(const StmtNode& s) {
  if (s.buffer->scope != Scope::kRegister) return fail();
  BufferNode wide = *s.buffer;
  wide.size *= lanes_;
  Buffer buffer = std::make_shared<const BufferNode>(std::move(wide));
  private_buffers_[s.buffer.get()] = {buffer, mask_};
  return alloc(buffer);
}

Stmt LoopVectorizer::stmt(const Stmt& s) {
  if (failed_) return block({});
  switch (s->kind) {
    case StmtKind::kBlock: {
      std::vector<Stmt> body;
      for (const Stmt& child : s->body) body.push_back(stmt(child));
      return block(std::move(body));
    }
    case StmtKind::kFor: {
      Expr extent = expr(s->extent);
      Expr scalar = failed_ ? nullptr : uniform_value(simplify_(extent));
      if (!scalar) return fail();
      return for_loop(s->var, scalar, s->axis, stmt(s->body[0]));
    }
    case StmtKind::kIf:
      return condition(*s);
    case StmtKind::kLet:
      return widen_let(*s);
    case StmtKind::kStore:
      return store(*s);
    case StmtKind::kAlloc:
      return widen_alloc(*s);
    case StmtKind::kPrefetch:
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
    case StmtKind::kBarrier:
      return fail();
  }
  QUERNEL_UNREACHABLE("statement kind is not handled");
}

// Whether some lane of `a` is another lane of `b`, as far as constants tell.
bool LoopVectorizer::collide(const Expr& a, const Expr& b) {
  if (a->kind != ExprKind::kRamp || b->kind != ExprKind::kRamp || a->stride != b->stride) return true;
  int64_t distance = 0;
  if (!as_const_int(simplify_(a->args[0] - b->args[0]), &distance)) return false;
  return distance != 0 && distance % a->stride == 0 && std::abs(distance / a->stride) < lanes_;
}

bool LoopVectorizer::independent() {
  for (const Buffer& buffer : shared_) {
    const Accesses& accesses = accesses_[buffer.get()];
    if (accesses.stores.empty()) continue;
    const Expr& first = accesses.stores[0];
    for (size_t i = 1; i < accesses.stores.size(); ++i)
      if (collide(first, accesses.stores[i])) return false;
    for (const Expr& load : accesses.loads)
      if (collide(first, load)) return false;
  }
  return true;
}

class Vectorizer {
 public:
  explicit Vectorizer(const Kernel& kernel) : names_(kernel) {
    for (const GridAxis& axis : kernel.grid) bound(axis.var, axis.extent);
  }
  Stmt run(const Stmt& s);

 private:
  Stmt run_for(const StmtNode& s);
  void bound(const Var& var, const Expr& extent) {
    Interval range = simplify_.range(simplify_(extent));
    simplify_.bound(var, {0, std::max<int64_t>(range.hi - 1, 0)});
  }

  FreshNames names_;
  ExprSimplifier simplify_;
};

Stmt Vectorizer::run_for(const StmtNode& s) {
  bound(s.var, s.extent);
  Stmt body = run(s.body[0]);
  int64_t lanes = 0;
  if (s.axis != AxisKind::kVector) return for_loop(s.var, s.extent, s.axis, std::move(body));
  if (as_const_int(s.extent, &lanes) && lanes > 1) {
    LoopVectorizer vectorizer(s.var, static_cast<int>(lanes), names_, simplify_);
    Stmt wide = vectorizer.stmt(body);
    if (!vectorizer.failed() && vectorizer.independent()) return wide;
  }
  return for_loop(s.var, s.extent, AxisKind::kSerial, std::move(body));
}

Stmt Vectorizer::run(const Stmt& s) {
  switch (s->kind) {
    case StmtKind::kBlock: {
      std::vector<Stmt> body;
      for (const Stmt& child : s->body) body.push_back(run(child));
      return block(std::move(body));
    }
    case StmtKind::kFor:
      return run_for(*s);
    case StmtKind::kIf:
      return if_then(s->condition, run(s->body[0]), s->body.size() > 1 ? run(s->body[1]) : nullptr);
    default:
      return s;
  }
}

}  // namespace

void vectorize_loops(Kernel& kernel) { kernel.body = Vectorizer(kernel).run(kernel.body); }

}  // namespace quernel::loop
