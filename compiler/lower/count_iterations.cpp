#include "lower/count_iterations.h"

#include <optional>
#include <unordered_map>

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::Stmt;
using loop::StmtKind;

// The least and the greatest value of an integer expression, if they are known.
struct Range {
  std::optional<Dim> lo, hi;
};

class Counter {
 public:
  Counter(const loop::Kernel& kernel, const std::vector<Dim>& symbols) : symbols_(symbols) {
    for (const loop::GridAxis& axis : kernel.grid) vars_[axis.var.get()] = counted(range(axis.extent));
  }

  Dim iterations(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kBlock: {
        Dim sum = 0;
        for (const Stmt& inner : s->body) sum += iterations(inner);
        return sum;
      }
      case StmtKind::kLet:
        vars_[s->var.get()] = range(s->value);
        return 0;
      case StmtKind::kIf: {
        Dim most = 0;
        for (const Stmt& side : s->body) most = max(most, iterations(side));
        return most;
      }
      case StmtKind::kFor: {
        Range extent = range(s->extent);
        if (extent.hi && extent.hi->is_const() && extent.hi->value() <= kFew)
          return iterations_of_few(s, extent);
        vars_[s->var.get()] = counted(extent);
        Dim inside = iterations(s->body[0]);
        return extent.hi ? *extent.hi * (inside + 1) : inside;
      }
      default:
        return 0;
    }
  }

 private:
  static constexpr int64_t kFew = 64;

  // Of a loop whose iterations may have inner loops of different lengths: heaps and trees.
  Dim iterations_of_few(const Stmt& s, const Range& extent) {
    auto inside_of = [&](const Range& values) {
      vars_[s->var.get()] = values;
      return iterations(s->body[0]);
    };
    const Dim inside = inside_of(counted(extent));
    const int64_t count = extent.hi->value();
    if (count <= 1 ||
        (inside_of({Dim(0), Dim(0)}) == inside && inside_of({*extent.hi - 1, *extent.hi - 1}) == inside))
      return *extent.hi * (inside + 1);
    Dim sum = count;
    for (int64_t i = 0; i < count; ++i) sum += inside_of({Dim(i), Dim(i)});
    return sum;
  }

  // Of a variable that counts up to `extent`.
  static Range counted(const Range& extent) {
    return {Dim(0), extent.hi ? std::optional<Dim>(*extent.hi - 1) : std::nullopt};
  }

  Range range(const Expr& e) {
    if (e->type.lanes > 1 || is_float(e->type.dtype)) return {};
    switch (e->kind) {
      case ExprKind::kConst: {
        Dim value(static_cast<int64_t>(e->bits));
        return {value, value};
      }
      case ExprKind::kVar: {
        auto found = vars_.find(e->var.get());
        return found == vars_.end() ? Range() : found->second;
      }
      case ExprKind::kSymbol: {
        const Dim& value = symbols_[static_cast<size_t>(e->symbol)];
        return {value, value};
      }
      case ExprKind::kCast:
        return range(e->args[0]);
      case ExprKind::kSelect: {
        Range a = range(e->args[1]), b = range(e->args[2]);
        return {both(a.lo, b.lo, min), both(a.hi, b.hi, max)};
      }
      case ExprKind::kBinary:
        return is_float(e->args[0]->type.dtype) ? Range()
                                                : combined(e->binary, range(e->args[0]), range(e->args[1]));
      default:
        return {};
    }
  }

  // Factors and divisors are sizes: not negative.
  static Range combined(BinaryOp op, const Range& a, const Range& b) {
    switch (op) {
      case BinaryOp::k_add:
        return {both(a.lo, b.lo, sum), both(a.hi, b.hi, sum)};
      case BinaryOp::k_sub:
        return {both(a.lo, b.hi, difference), both(a.hi, b.lo, difference)};
      case BinaryOp::k_mul:
        return {both(a.lo, b.lo, product), both(a.hi, b.hi, product)};
      case BinaryOp::k_idiv:
      case BinaryOp::k_fdiv:
        return {both(a.lo, b.hi, floordiv), both(a.hi, b.lo, floordiv)};
      case BinaryOp::k_mod:
      case BinaryOp::k_fmod:
        return {Dim(0), b.hi ? std::optional<Dim>(a.hi ? min(*a.hi, *b.hi - 1) : *b.hi - 1) : a.hi};
      case BinaryOp::k_min:
        // A side that is known bounds the minimum.
        return {both(a.lo, b.lo, min), a.hi && b.hi ? min(*a.hi, *b.hi) : a.hi ? a.hi : b.hi};
      case BinaryOp::k_max:
        return {a.lo && b.lo ? max(*a.lo, *b.lo) : a.lo ? a.lo : b.lo, both(a.hi, b.hi, max)};
      case BinaryOp::k_shl: {
        std::optional<int64_t> bits = b.hi && b.hi->is_const() ? std::optional(b.hi->value()) : std::nullopt;
        if (!bits || *bits < 0 || *bits > 62 || !a.hi) return {};
        return {a.lo, *a.hi * (int64_t{1} << *bits)};
      }
      default:
        return {};
    }
  }
  static std::optional<Dim> both(const std::optional<Dim>& a, const std::optional<Dim>& b,
                                 Dim (*combine)(const Dim&, const Dim&)) {
    return a && b ? std::optional<Dim>(combine(*a, *b)) : std::nullopt;
  }
  static Dim sum(const Dim& a, const Dim& b) { return a + b; }
  static Dim difference(const Dim& a, const Dim& b) { return a - b; }
  static Dim product(const Dim& a, const Dim& b) { return a * b; }

  const std::vector<Dim>& symbols_;
  std::unordered_map<const loop::VarNode*, Range> vars_;
};

}  // namespace

Dim count_iterations(const loop::Kernel& kernel, const std::vector<Dim>& symbols) {
  return Counter(kernel, symbols).iterations(kernel.body);
}

}  // namespace quernel::lower
