// The unroll_loops pass: copies with the loop variable's value substituted; what a copy declares gets a fresh
// name.
#include "loop/passes.h"
#include "loop/rewrite.h"
#include "support/diagnostic.h"

namespace quernel::loop {
namespace {

class Unroller {
 public:
  explicit Unroller(const Kernel& kernel) : names_(kernel) {}
  Stmt run(const Stmt& s);

 private:
  // `copies` is null outside of unrolled loops, where every declaration keeps its name.
  Stmt copy(const Stmt& s, Substitution* copies);
  Stmt copy_for(const StmtNode& s, Substitution* copies);
  Stmt unroll(const StmtNode& s, int64_t extent, Substitution* copies);

  FreshNames names_;
};

Expr apply(Substitution* copies, const Expr& e) { return copies ? (*copies)(e) : e; }

Stmt Unroller::run(const Stmt& s) { return copy(s, nullptr); }

Stmt Unroller::unroll(const StmtNode& s, int64_t extent, Substitution* copies) {
  std::vector<Stmt> body;
  for (int64_t i = 0; i < extent; ++i) {
    Substitution copy(copies);
    copy.replace(s.var, const_index(i));
    body.push_back(this->copy(s.body[0], &copy));
  }
  return block(std::move(body));
}

Stmt Unroller::copy_for(const StmtNode& s, Substitution* copies) {
  Expr extent = apply(copies, s.extent);
  int64_t count = 0;
  if (s.axis == AxisKind::kUnrolled && as_const_int(extent, &count)) return unroll(s, count, copies);
  Var var = s.var;
  if (copies) {
    var = names_.var(s.var->name, s.var->type);
    copies->replace(s.var, var_ref(var));
  }
  // Code generators know no other kinds; without a constant extent there is nothing to unroll.
  AxisKind axis = s.axis == AxisKind::kUnrolled ? AxisKind::kSerial : s.axis;
  return for_loop(var, std::move(extent), axis, copy(s.body[0], copies));
}

Stmt Unroller::copy(const Stmt& s, Substitution* copies) {
  switch (s->kind) {
    case StmtKind::kBlock: {
      std::vector<Stmt> body;
      for (const Stmt& child : s->body) {
        Stmt next = copy(child, copies);
        bool joins = child->kind == StmtKind::kFor && next->kind == StmtKind::kBlock;
        if (joins)  // the copies of an unrolled loop; each is a block of its own already
          body.insert(body.end(), next->body.begin(), next->body.end());
        else
          body.push_back(std::move(next));
      }
      return block(std::move(body));
    }
    case StmtKind::kFor:
      return copy_for(*s, copies);
    case StmtKind::kIf:
      return if_then(apply(copies, s->condition), copy(s->body[0], copies),
                     s->body.size() > 1 ? copy(s->body[1], copies) : nullptr);
    case StmtKind::kLet: {
      if (!copies) return s;
      Expr value = (*copies)(s->value);
      Var var = names_.var(s->var->name, s->var->type);
      copies->replace(s->var, var_ref(var));
      return let(var, std::move(value));
    }
    case StmtKind::kStore:
      if (!copies) return s;
      return store((*copies)(s->buffer), (*copies)(s->index), (*copies)(s->value), (*copies)(s->condition));
    case StmtKind::kAlloc: {
      if (!copies) return s;
      Buffer buffer = names_.buffer(*s->buffer);
      copies->replace(s->buffer, buffer);
      return alloc(buffer);
    }
    case StmtKind::kPrefetch:
      return copies ? prefetch(s->buffer, (*copies)(s->index)) : s;
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
      if (!copies) return s;
      return with_places(*s, (*copies)(s->buffer),
                         [&](const MatrixPlace& place) { return (*copies)(place); });
    case StmtKind::kBarrier:
      return s;
  }
  QUERNEL_UNREACHABLE("statement kind is not handled");
}

}  // namespace

void unroll_loops(Kernel& kernel) { kernel.body = Unroller(kernel).run(kernel.body); }

}  // namespace quernel::loop
