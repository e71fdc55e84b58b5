#include "loop/share_kernels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "loop/rewrite.h"

namespace quernel::loop {
namespace {

// Arguments are passed through 16 bits, which bounds what index arithmetic makes of them.
std::optional<DType> argument_dtype(const std::vector<int64_t>& values) {
  const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
  if (*lowest >= 0 && *highest <= UINT16_MAX) return DType::kU16;
  if (*lowest >= INT16_MIN && *highest <= INT16_MAX) return DType::kI16;
  return std::nullopt;
}

// An index constant of a kernel.
struct Literal {
  int64_t value = 0;
  bool accumulates = false;   // inside a loop that accumulates, and no factor of what is known outside of it
  bool counts_steps = false;  // the extent of a loop that accumulates
  bool computes =
      false;  // in a value that is no place, or in that of an element that it loads: no factor either
  bool divides = false;
};

// Rebuilds a kernel in the order of its text. Describes what is left without its index constants.
class Walk {
 public:
  // `replacements`: for each index constant in order, what replaces it, or null; empty: none are replaced.
  explicit Walk(const Kernel& kernel, std::vector<Expr> replacements = {})
      : replacements_(std::move(replacements)) {
    for (const Buffer& b : kernel.buffers) {
      number(b.get());
      say(std::string(to_string(b->dtype)) +
          (b->access == Access::kRead    ? "r"
           : b->access == Access::kWrite ? "w"
                                         : "b") +
          std::to_string(b->below));
    }
    for (const GridAxis& axis : kernel.grid) number(axis.var.get());
    if (kernel.body) body_ = statement(kernel.body);
  }

  const std::string& description() const { return description_; }
  const std::vector<Literal>& literals() const { return literals_; }
  int64_t nodes() const { return nodes_; }
  // Whether sums outside of loops of their own, such as unrolled ones, have index constants.
  bool accumulates_outside() const { return accumulates_outside_; }
  bool multiplies_matrices() const { return multiplies_matrices_; }
  Stmt body() const { return body_; }

 private:
  void say(const std::string& text) { description_ += text + " "; }
  void number(const void* thing) { numbers_.try_emplace(thing, numbers_.size()); }
  void name(const void* thing) { say(std::to_string(numbers_.at(thing))); }

  // `role`: the expression's place among the operands of what it is in.
  enum class Role { kTerm, kDivisor, kFactorOfOuter };

  Expr literal(const Expr& e, Role role) {
    const size_t place = literals_.size();
    const bool moves = role != Role::kFactorOfOuter;  // in each step, and not a pointer once
    literals_.push_back({static_cast<int64_t>(e->bits), inside_ > 0 && moves, counts_steps_,
                         computes_ && moves, role == Role::kDivisor});
    say("#");
    return place < replacements_.size() && replacements_[place] ? replacements_[place] : e;
  }

  // constant + the sum of factor * atom: what runs backwards through a loop differs in them from what runs forwards.
  struct Sum {
    struct Term {
      Expr atom;
      int64_t factor;
    };
    int64_t constant = 0;
    std::vector<Term> terms;
  };

  static bool is_sum(const ExprNode& e) {
    return e.kind == ExprKind::kBinary && e.type == kIndexType &&
           (e.binary == BinaryOp::k_add || e.binary == BinaryOp::k_sub ||
            (e.binary == BinaryOp::k_mul && e.args[1]->kind == ExprKind::kConst));
  }

  void add_to(Sum& sum, const Expr& e, int64_t times) {
    nodes_ += e->kind == ExprKind::kConst || is_sum(*e);
    if (e->kind == ExprKind::kConst) {
      sum.constant += times * static_cast<int64_t>(e->bits);
    } else if (!is_sum(*e)) {
      sum.terms.push_back({e, times});
    } else if (e->binary == BinaryOp::k_mul) {
      add_to(sum, e->args[0], times * static_cast<int64_t>(e->args[1]->bits));
    } else {
      add_to(sum, e->args[0], times);
      add_to(sum, e->args[1], e->binary == BinaryOp::k_add ? times : -times);
    }
  }

  // Describes the terms in the order of their variables.
  Expr index_sum(const Expr& e) {
    Sum sum;
    add_to(sum, e, 1);
    auto order = [&](const Sum::Term& t) { return t.atom->var ? numbers_.at(t.atom->var.get()) : SIZE_MAX; };
    std::stable_sort(sum.terms.begin(), sum.terms.end(),
                     [&](const Sum::Term& a, const Sum::Term& b) { return order(a) < order(b); });
    say("{");
    Expr result;
    for (const Sum::Term& t : sum.terms) {
      const Expr atom = expr(t.atom);
      const Expr factor =
          literal(const_index(t.factor), is_outer(*t.atom) ? Role::kFactorOfOuter : Role::kTerm);
      result = result ? result + atom * factor : atom * factor;
    }
    const Expr constant = literal(const_index(sum.constant), Role::kTerm);
    say("}");
    return result ? result + constant : constant;
  }

  Expr expr(const Expr& e, Role role = Role::kTerm) {
    if (is_sum(*e)) return index_sum(e);
    ++nodes_;
    if (e->kind == ExprKind::kConst && e->type == kIndexType) return literal(e, role);
    say("(" + std::to_string(static_cast<int>(e->kind)) + " " + std::string(to_string(e->type.dtype)) + "x" +
        std::to_string(e->type.lanes) + " " + std::to_string(e->bits) + " " + std::to_string(e->symbol) +
        " " + std::to_string(static_cast<int>(e->unary)) + " " + std::to_string(static_cast<int>(e->binary)) +
        " " + std::to_string(e->stride));
    if (e->var) name(e->var.get());
    if (e->buffer) name(e->buffer.get());
    auto copy = std::make_shared<ExprNode>(*e);
    for (size_t i = 0; i < copy->args.size(); ++i)
      copy->args[i] = expr(e->args[i], i == 1 && is_division(*e) ? Role::kDivisor : Role::kTerm);
    say(")");
    return copy;
  }

  // Whether no loop that accumulates computes the value anew.
  bool is_outer(const ExprNode& e) const {
    return e.kind != ExprKind::kLoad && (!e.var || inner_.count(e.var.get()) == 0) &&
           std::all_of(e.args.begin(), e.args.end(), [&](const Expr& a) { return is_outer(*a); });
  }

  static bool is_division(const ExprNode& e) {
    return e.kind == ExprKind::kBinary && (e.binary == BinaryOp::k_idiv || e.binary == BinaryOp::k_fmod ||
                                           e.binary == BinaryOp::k_fdiv || e.binary == BinaryOp::k_mod);
  }

  static bool loads(const Expr& e, const BufferNode* buffer) {
    return (e->kind == ExprKind::kLoad && e->buffer.get() == buffer) ||
           std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return loads(a, buffer); });
  }

  Stmt statement(const Stmt& s) {
    ++nodes_;
    multiplies_matrices_ |= s->matrices != nullptr;
    say("[" + std::to_string(static_cast<int>(s->kind)) + " " + std::to_string(static_cast<int>(s->axis)));
    auto copy = std::make_shared<StmtNode>(*s);
    const bool reduces = s->kind == StmtKind::kFor && s->axis == AxisKind::kReduction;
    counts_steps_ = reduces && s->extent->kind == ExprKind::kConst;
    inside_ += reduces && !counts_steps_;
    if (s->extent) copy->extent = expr(s->extent);
    inside_ += counts_steps_;
    counts_steps_ = false;
    if (s->kind == StmtKind::kAlloc) {
      number(s->buffer.get());
      say(std::string(to_string(s->buffer->dtype)) + std::to_string(s->buffer->size) + " " +
          std::to_string(static_cast<int>(s->buffer->scope)));
    }
    if (s->kind == StmtKind::kFor) number(s->var.get());
    if (s->var && inside_ > 0) inner_.insert(s->var.get());
    if (s->kind == StmtKind::kPrefetch) name(s->buffer.get());
    if (s->kind == StmtKind::kStore) {
      name(s->buffer.get());
      accumulates_outside_ |=
          inside_ == 0 && s->buffer->scope == Scope::kRegister && loads(s->value, s->buffer.get());
    }
    if (s->condition) copy->condition = expr(s->condition);
    if (s->index) copy->index = expr(s->index);
    computes_ = s->value && s->value->type != kIndexType;
    if (s->value) copy->value = expr(s->value);
    computes_ = false;
    if (s->kind == StmtKind::kLet) number(s->var.get());
    for (Stmt& child : copy->body)
      if (child) child = statement(child);
    inside_ -= reduces;
    say("]");
    return copy;
  }

  std::vector<Expr> replacements_;
  std::unordered_map<const void*, size_t>
      numbers_;                            // of buffers and variables, in the order of their declaration
  std::unordered_set<const void*> inner_;  // variables inside loops that accumulate, and theirs
  std::string description_;
  std::vector<Literal> literals_;
  int64_t nodes_ = 0;
  int inside_ = 0;
  bool accumulates_outside_ = false, multiplies_matrices_ = false, computes_ = false, counts_steps_ = false;
  Stmt body_;
};

bool may_share(const Kernel& kernel) {
  return kernel.symbols.empty() && kernel.grid.empty() && !kernel.counts_iterations && kernel.body;
}

// The values that one index constant has in the kernels of a class.
using Values = std::vector<int64_t>;

// values == factor * of + offset.
struct Linear {
  size_t argument = 0;
  int64_t factor = 1, offset = 0;
};
std::optional<Linear> as_linear(const Values& values, const Values& of) {
  auto other = std::find_if(of.begin(), of.end(), [&](int64_t x) { return x != of[0]; });
  const auto at = static_cast<size_t>(other - of.begin());
  const int64_t change = values[at] - values[0], by = of[at] - of[0];
  if (change % by != 0) return std::nullopt;
  const Linear result{0, change / by, values[0] - change / by * of[0]};
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i] != result.factor * of[i] + result.offset) return std::nullopt;
  return result;
}

// Kernels of equal descriptions.
class Class {
 public:
  explicit Class(std::vector<const Walk*> walks) : walks_(std::move(walks)) {
    const std::vector<Literal>& literals = walks_[0]->literals();
    for (size_t place = 0; place < literals.size(); ++place) {
      Values values;
      for (const Walk* walk : walks_) values.push_back(walk->literals()[place].value);
      if (std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; })) continue;
      const Linear in_argument = linear(values);
      places_.emplace(place, in_argument);
      if (literals[place].counts_steps) positive_.insert(in_argument.argument);
    }
  }

  const std::vector<Values>& arguments() const { return arguments_; }

  // Whether less code is worth the arguments' words in each call, and what the kernel does to have them.
  bool pays() const {
    constexpr int64_t kNodeBytes = 2, kArgumentBytes = 8, kCallBytes = 4;
    const auto calls = static_cast<int64_t>(walks_.size()), count = static_cast<int64_t>(arguments_.size());
    const bool fits = std::all_of(arguments_.begin(), arguments_.end(),
                                  [](const Values& values) { return argument_dtype(values).has_value(); });
    return fits && divides_by_positive() &&
           (calls - 1) * walks_[0]->nodes() * kNodeBytes > count * (calls * kCallBytes + kArgumentBytes);
  }

  // Requires that it pays. `all`: the kernels of the class.
  Kernel merged(const std::vector<const Kernel*>& all) const {
    const Kernel& kernel = *all[0];
    Kernel result = kernel;
    FreshNames names(kernel);
    std::vector<Stmt> statements;
    std::vector<Expr> arguments;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      result.symbols.push_back("size" + std::to_string(i));
      const Var var = names.var("size", kIndexType);
      Expr value = cast(DType::kI64, cast(*argument_dtype(arguments_[i]), symbol_ref(static_cast<int>(i))));
      // A loop that is known to have steps needs no test before the first one.
      if (positive_.count(i) > 0) value = binary(BinaryOp::k_max, std::move(value), const_index(1));
      statements.push_back(let(var, std::move(value)));
      arguments.push_back(var_ref(var));
    }
    std::vector<Expr> replacements(walks_[0]->literals().size());
    for (const auto& [place, linear] : places_) {
      Expr& e = replacements[place];
      e = arguments[linear.argument] * const_index(linear.factor) + const_index(linear.offset);
      // A divisor that is known not to be zero needs no test.
      if (walks_[0]->literals()[place].divides) e = binary(BinaryOp::k_max, e, const_index(1));
    }
    statements.push_back(Walk(kernel, std::move(replacements)).body());
    result.body = block(std::move(statements));
    Substitution substitution;
    for (size_t b = 0; b < result.buffers.size(); ++b) {
      auto buffer = std::make_shared<BufferNode>(*result.buffers[b]);
      for (const Kernel* other : all) {
        if (other->buffers[b]->size != buffer->size) buffer->size = kUnknownSize;
        buffer->overlaps |= other->buffers[b]->overlaps;
        buffer->aligned &= other->buffers[b]->aligned;
      }
      substitution.replace(result.buffers[b], buffer);
      result.buffers[b] = std::move(buffer);
    }
    result.body = with_buffers(result.body, substitution);
    return result;
  }

 private:
  bool divides_by_positive() const {
    return std::all_of(places_.begin(), places_.end(), [&](const auto& entry) {
      return std::all_of(walks_.begin(), walks_.end(), [&](const Walk* walk) {
        const Literal& l = walk->literals()[entry.first];
        return !l.divides || l.value > 0;
      });
    });
  }

  static Stmt with_buffers(const Stmt& s, Substitution& substitution) {
    auto copy = std::make_shared<StmtNode>(*s);
    for (Expr* e : {&copy->extent, &copy->condition, &copy->index, &copy->value})
      if (*e) *e = substitution(*e);
    if (s->kind == StmtKind::kStore || s->kind == StmtKind::kPrefetch) copy->buffer = substitution(s->buffer);
    for (Stmt& child : copy->body)
      if (child) child = with_buffers(child, substitution);
    return copy;
  }

  Linear linear(const Values& values) {
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (std::optional<Linear> known = as_linear(values, arguments_[i])) {
        known->argument = i;
        return *known;
      }
    arguments_.push_back(values);
    return {arguments_.size() - 1, 1, 0};
  }

  std::vector<const Walk*> walks_;
  std::vector<Values> arguments_;
  std::set<size_t> positive_;        // arguments
  std::map<size_t, Linear> places_;  // of the index constants that differ
};

}  // namespace

std::vector<SharedKernel> share_kernels(std::vector<Kernel>& kernels) {
  std::vector<Walk> walks;
  std::map<std::string, std::vector<size_t>> classes;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const Walk& walk = walks.emplace_back(kernels[k]);
    std::string key = walk.description();
    for (const Literal& l : walk.literals())
      if (l.accumulates || (l.computes && walk.accumulates_outside())) key += std::to_string(l.value) + " ";
    if (!may_share(kernels[k]) || walk.multiplies_matrices()) key = "kernel " + std::to_string(k);
    classes[key].push_back(k);
  }
  std::vector<int> first(kernels.size());  // of its class
  std::vector<std::vector<int64_t>> arguments(kernels.size());
  std::vector<Kernel> merged = kernels;
  for (size_t k = 0; k < kernels.size(); ++k) first[k] = static_cast<int>(k);
  for (const auto& [key, members] : classes) {
    std::vector<const Walk*> of_members;
    std::vector<const Kernel*> all;
    for (size_t k : members) of_members.push_back(&walks[k]), all.push_back(&kernels[k]);
    const Class kind(of_members);
    if (members.size() < 2 || !kind.pays()) continue;
    merged[members[0]] = kind.merged(all);
    for (size_t i = 0; i < members.size(); ++i) {
      first[members[i]] = static_cast<int>(members[0]);
      for (const Values& values : kind.arguments()) arguments[members[i]].push_back(values[i]);
    }
  }
  std::vector<SharedKernel> result(kernels.size());
  std::vector<Kernel> left;
  for (size_t k = 0; k < kernels.size(); ++k) {
    const auto shared = static_cast<size_t>(first[k]);
    if (shared == k) {
      result[k].kernel = static_cast<int>(left.size());
      left.push_back(std::move(merged[k]));
    } else {
      result[k].kernel = result[shared].kernel;
    }
    result[k].arguments = std::move(arguments[k]);
  }
  kernels = std::move(left);
  return result;
}

}  // namespace quernel::loop
