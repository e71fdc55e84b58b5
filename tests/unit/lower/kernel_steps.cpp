#include "kernel_steps.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "loop/evaluate_scalar.h"
#include "loop/print.h"

namespace quernel {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::Stmt;
using loop::StmtKind;

using Value = std::optional<int64_t>;

Value compute(BinaryOp op, int64_t a, int64_t b) {
  bool divides =
      op == BinaryOp::k_idiv || op == BinaryOp::k_fdiv || op == BinaryOp::k_mod || op == BinaryOp::k_fmod;
  if (!loop::binary_accepts(op, DType::kI64) || (divides && b == 0)) return std::nullopt;
  return static_cast<int64_t>(
      loop::evaluate_binary(op, DType::kI64, static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

class Counter {
 public:
  Counter(const std::vector<int64_t>& symbols, KernelSteps& steps) : symbols_(symbols), steps_(steps) {}

  void enter_grid(const loop::Kernel& kernel) {
    for (const loop::GridAxis& axis : kernel.grid) vars_[axis.var.get()] = 0, grid_.insert(axis.var.get());
  }

  double turns(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kBlock: {
        double sum = 0;
        for (const Stmt& inner : s->body) sum += turns(inner);
        return sum;
      }
      case StmtKind::kLet:
        if (depends_on_grid(s->value)) grid_.insert(s->var.get());
        vars_[s->var.get()] = of(s->value);
        return 0;
      case StmtKind::kIf: {
        Value decided = depends_on_grid(s->condition) ? Value() : of(s->condition);
        if (decided) return *decided != 0 ? turns(s->body[0]) : s->body.size() > 1 ? turns(s->body[1]) : 0;
        double most = 0;
        for (const Stmt& side : s->body) most = std::max(most, turns(side));
        return most;
      }
      case StmtKind::kFor:
        return turns_of_loop(s);
      default:
        return 0;
    }
  }

 private:
  double turns_of_loop(const Stmt& s) {
    Value extent = of(s->extent);
    if (!extent) {
      if (steps_.unknown.empty()) steps_.unknown = loop::to_string(s->extent);
      return 0;
    }
    if (*extent <= 0) return 0;
    // The last turns of a long loop may differ from the first: all are looked at where their extents do.
    vars_[s->var.get()] = std::nullopt;
    std::string before = std::exchange(steps_.unknown, "");
    double inside = turns(s->body[0]);
    bool same = steps_.unknown.empty();
    steps_.unknown = before;
    if (same) return static_cast<double>(*extent) * (1 + inside);
    double sum = 0;
    for (int64_t i = 0; i < *extent && sum < 1e9; ++i) {
      vars_[s->var.get()] = i;
      sum += 1 + turns(s->body[0]);
    }
    return sum;
  }

  bool depends_on_grid(const Expr& e) {
    if (e->kind == ExprKind::kVar) return grid_.contains(e->var.get());
    return std::any_of(e->args.begin(), e->args.end(), [&](const Expr& arg) { return depends_on_grid(arg); });
  }

  Value of(const Expr& e) {
    if (e->type.lanes > 1) return std::nullopt;
    switch (e->kind) {
      case ExprKind::kConst:
        return static_cast<int64_t>(e->bits);
      case ExprKind::kVar: {
        auto found = vars_.find(e->var.get());
        return found == vars_.end() ? Value() : found->second;
      }
      case ExprKind::kSymbol:
        return symbols_[static_cast<size_t>(e->symbol)];
      case ExprKind::kCast:
        return is_float(e->type.dtype) ? Value() : of(e->args[0]);
      case ExprKind::kSelect: {
        Value condition = of(e->args[0]);
        return condition ? of(e->args[*condition != 0 ? 1 : 2]) : Value();
      }
      case ExprKind::kBinary: {
        if (is_float(e->args[0]->type.dtype)) return std::nullopt;
        Value a = of(e->args[0]), b = of(e->args[1]);
        // A side that is known bounds a minimum of two extents.
        if (e->binary == BinaryOp::k_min && (a || b) && !(a && b)) return a ? a : b;
        return a && b ? compute(e->binary, *a, *b) : Value();
      }
      default:
        return std::nullopt;
    }
  }

  const std::vector<int64_t>& symbols_;
  KernelSteps& steps_;
  std::unordered_map<const loop::VarNode*, Value> vars_;
  std::unordered_set<const loop::VarNode*> grid_;  // the workgroup's place decides them
};

}  // namespace

KernelSteps count_steps(const loop::Kernel& kernel, const std::vector<int64_t>& symbols) {
  KernelSteps steps;
  Counter counter(symbols, steps);
  counter.enter_grid(kernel);
  steps.turns = counter.turns(kernel.body);
  return steps;
}

}  // namespace quernel
