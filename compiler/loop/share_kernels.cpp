#include "loop/share_kernels.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "loop/rewrite.h"

namespace quernel::loop {
namespace {

// Arguments are passed through 16 bits, which bounds what index arithmetic makes of them.
constexpr DType kArgument = DType::kU16;
constexpr int64_t kMostArgument = 65535;

// An index constant of a kernel.
struct Literal {
  int64_t value = 0;
  bool accumulates = false;  // inside a loop that accumulates, or its extent
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
  Stmt body() const { return body_; }

 private:
  void say(const std::string& text) { description_ += text + " "; }
  void number(const void* thing) { numbers_.try_emplace(thing, numbers_.size()); }
  void name(const void* thing) { say(std::to_string(numbers_.at(thing))); }

  Expr literal(const Expr& e, bool divides) {
    const size_t place = literals_.size();
    literals_.push_back({static_cast<int64_t>(e->bits), inside_ > 0, divides});
    say("#");
    return place < replacements_.size() && replacements_[place] ? replacements_[place] : e;
  }

  Expr expr(const Expr& e, bool divides = false) {
    ++nodes_;
    if (e->kind == ExprKind::kConst && e->type == kIndexType) return literal(e, divides);
    say("(" + std::to_string(static_cast<int>(e->kind)) + " " + std::string(to_string(e->type.dtype)) + "x" +
        std::to_string(e->type.lanes) + " " + std::to_string(e->bits) + " " + std::to_string(e->symbol) +
        " " + std::to_string(static_cast<int>(e->unary)) + " " + std::to_string(static_cast<int>(e->binary)) +
        " " + std::to_string(e->stride));
    if (e->var) name(e->var.get());
    if (e->buffer) name(e->buffer.get());
    auto copy = std::make_shared<ExprNode>(*e);
    for (size_t i = 0; i < copy->args.size(); ++i)
      copy->args[i] = expr(e->args[i], i == 1 && is_division(*e));
    say(")");
    return copy;
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
    say("[" + std::to_string(static_cast<int>(s->kind)) + " " + std::to_string(static_cast<int>(s->axis)));
    auto copy = std::make_shared<StmtNode>(*s);
    const bool reduces = s->kind == StmtKind::kFor && s->axis == AxisKind::kReduction;
    inside_ += reduces;
    if (s->extent) copy->extent = expr(s->extent);
    if (s->kind == StmtKind::kAlloc) {
      number(s->buffer.get());
      say(std::string(to_string(s->buffer->dtype)) + std::to_string(s->buffer->size) + " " +
          std::to_string(static_cast<int>(s->buffer->scope)));
    }
    if (s->kind == StmtKind::kFor) number(s->var.get());
    if (s->kind == StmtKind::kStore) {
      name(s->buffer.get());
      accumulates_outside_ |=
          inside_ == 0 && s->buffer->scope == Scope::kRegister && loads(s->value, s->buffer.get());
    }
    if (s->condition) copy->condition = expr(s->condition);
    if (s->index) copy->index = expr(s->index);
    if (s->value) copy->value = expr(s->value);
    if (s->kind == StmtKind::kLet) number(s->var.get());
    for (Stmt& child : copy->body)
      if (child) child = statement(child);
    inside_ -= reduces;
    say("]");
    return copy;
  }

  std::vector<Expr> replacements_;
  std::unordered_map<const void*, size_t>
      numbers_;  // of buffers and variables, in the order of their declaration
  std::string description_;
  std::vector<Literal> literals_;
  int64_t nodes_ = 0;
  int inside_ = 0;
  bool accumulates_outside_ = false;
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
    const size_t count = walks_[0]->literals().size();
    for (size_t place = 0; place < count; ++place) {
      Values values;
      for (const Walk* walk : walks_) values.push_back(walk->literals()[place].value);
      if (std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == values[0]; })) continue;
      places_.emplace(place, linear(values));
    }
  }

  const std::vector<Values>& arguments() const { return arguments_; }

  // Whether less code is worth the arguments' words in each call, and what the kernel does to have them.
  bool pays() const {
    constexpr int64_t kNodeBytes = 2, kArgumentBytes = 8, kCallBytes = 4;
    const auto calls = static_cast<int64_t>(walks_.size()), count = static_cast<int64_t>(arguments_.size());
    const bool fits = std::all_of(arguments_.begin(), arguments_.end(), [](const Values& values) {
      return std::all_of(values.begin(), values.end(),
                         [](int64_t v) { return v >= 0 && v <= kMostArgument; });
    });
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
      statements.push_back(let(var, cast(DType::kI64, cast(kArgument, symbol_ref(static_cast<int>(i))))));
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
    if (s->kind == StmtKind::kStore) copy->buffer = substitution(s->buffer);
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
      if (l.accumulates || walk.accumulates_outside()) key += std::to_string(l.value) + " ";
    if (!may_share(kernels[k])) key = "kernel " + std::to_string(k);
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
