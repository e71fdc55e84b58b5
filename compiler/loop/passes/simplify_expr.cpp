#include "loop/passes/simplify_expr.h"

#include <functional>
#include <numeric>

#include "loop/evaluate_scalar.h"
#include "loop/fold.h"
#include "loop/rewrite.h"
#include "support/diagnostic.h"

namespace quernel::loop {
namespace {

constexpr size_t kMaxTerms = 32;  // longer sums stay opaque, so that chains of additions cost linear time
// Symbols are sizes and offsets: so small that index arithmetic on them does not wrap.
constexpr Interval kSymbolRange{-(int64_t{1} << 40), int64_t{1} << 40};

bool is_binary(const Expr& e, BinaryOp op) { return e->kind == ExprKind::kBinary && e->binary == op; }
bool is_index(const Expr& e) { return e->type.dtype == DType::kI64; }

bool is_remainder_by_constant(const Expr& e, int64_t* divisor) {
  return (is_binary(e, BinaryOp::k_mod) || is_binary(e, BinaryOp::k_fmod)) &&
         as_const_int(e->args[1], divisor) && *divisor > 0;
}
bool is_quotient_by_constant(const Expr& e, int64_t* divisor) {
  return (is_binary(e, BinaryOp::k_idiv) || is_binary(e, BinaryOp::k_fdiv)) &&
         as_const_int(e->args[1], divisor) && *divisor > 0;
}

bool has_vector_terms(const Affine& a) {
  for (const Affine::Term& term : a.terms)
    if (term.atom->type.lanes > 1) return true;
  return false;
}

}  // namespace

// ---- interning

size_t ExprSimplifier::Hash::operator()(const Expr& e) const {
  size_t hash = static_cast<size_t>(e->kind);
  auto mix = [&hash](size_t v) { hash = (hash ^ v) * 0x9e3779b97f4a7c15u + (hash >> 29); };
  mix(static_cast<size_t>(e->type.dtype) * 131071 + static_cast<size_t>(e->type.lanes));
  mix(e->bits);
  mix(std::hash<const void*>()(e->var.get()));
  mix(std::hash<const void*>()(e->buffer.get()));
  mix(static_cast<size_t>(e->symbol));
  mix(static_cast<size_t>(e->unary) * 256 + static_cast<size_t>(e->binary));
  mix(static_cast<size_t>(e->stride));
  for (const Expr& arg : e->args) mix(std::hash<const void*>()(arg.get()));
  return hash;
}

bool ExprSimplifier::Equal::operator()(const Expr& a, const Expr& b) const {
  return a->kind == b->kind && a->type == b->type && a->bits == b->bits && a->var == b->var &&
         a->symbol == b->symbol && a->buffer == b->buffer && a->unary == b->unary && a->binary == b->binary &&
         a->stride == b->stride && a->args == b->args;
}

Expr ExprSimplifier::intern(const Expr& e) {
  if (facts_.contains(e.get())) return e;
  Expr candidate = e;
  if (!e->args.empty()) {
    std::vector<Expr> args;
    for (const Expr& arg : e->args) args.push_back(intern(arg));
    if (args != e->args) {
      ExprNode node = *e;
      node.args = std::move(args);
      candidate = std::make_shared<const ExprNode>(std::move(node));
    }
  }
  auto [found, fresh] = interned_.insert(candidate);
  if (!fresh) return *found;
  Facts facts;
  if (candidate->kind == ExprKind::kVar) facts.innermost = ++variables_;
  facts.reads_memory = candidate->kind == ExprKind::kLoad;
  for (const Expr& arg : candidate->args) {
    const Facts& operand = this->facts(arg);
    facts.size = std::min(facts.size + operand.size, kMaxSize);
    facts.reads_memory |= operand.reads_memory;
    facts.innermost = std::max(facts.innermost, operand.innermost);
  }
  facts.order = {facts.innermost, !candidate->args.empty(), static_cast<int>(interned_.size())};
  facts_.emplace(candidate.get(), facts);
  return candidate;
}

void ExprSimplifier::bound(const Var& var, Interval range) {
  bounds_[var.get()] = range;
  intern(var_ref(var));  // numbers it: outer variables come first in sums
}

void ExprSimplifier::replace(const Var& var, Expr value) { replaced_[var.get()] = intern(value); }

// ---- rules by kind

Expr ExprSimplifier::operator()(const Expr& e) {
  if (!e) return nullptr;
  if (e->kind == ExprKind::kVar) {
    auto found = replaced_.find(e->var.get());
    return found == replaced_.end() ? intern(e) : found->second;
  }
  if (auto found = memo_.find(e.get()); found != memo_.end()) return found->second;
  std::vector<Expr> args;
  args.reserve(e->args.size());
  for (const Expr& arg : e->args) args.push_back((*this)(arg));
  Expr result = intern(rebuild(e, args));
  kept_.push_back(e);
  return memo_[e.get()] = result;
}

// `model`'s operation on other operands, which are in canonical form.
Expr ExprSimplifier::rebuild(const Expr& model, const std::vector<Expr>& args) {
  switch (model->kind) {
    case ExprKind::kLoad:
      return rebuild_load(model, args);
    case ExprKind::kUnary:
    case ExprKind::kBinary:
    case ExprKind::kMulAcc:
    case ExprKind::kDot:
    case ExprKind::kSelect:
    case ExprKind::kCast: {  // lane by lane: on uniform operands compute the scalar once
      std::vector<Expr> scalars;
      for (const Expr& arg : args)
        if (Expr scalar = uniform_value(arg); scalar && arg->type.lanes > 1)
          scalars.push_back(intern(scalar));
      if (scalars.size() == args.size())
        return broadcast(intern(rebuild(model, scalars)), args[0]->type.lanes);
      break;
    }
    default:
      break;
  }
  if (model->kind == ExprKind::kReduceLanes)
    if (Expr scalar = reduce_comparison(model, args[0])) return scalar;
  if (model->kind == ExprKind::kBinary && is_index(args[0]) && args[0]->type == args[1]->type)
    if (Expr index = rebuild_index(model->binary, args[0], args[1])) return index;
  if (model->kind == ExprKind::kUnary && model->unary == UnaryOp::k_neg && is_index(args[0]))
    return expr(affine(args[0]) * -1);
  if (model->kind == ExprKind::kUnary && model->unary == UnaryOp::k_not) {
    Expr negated = unary(UnaryOp::k_not, args[0]);
    if (negated->kind == ExprKind::kBinary && is_index(negated->args[0])) {
      Expr a = intern(negated->args[0]), b = intern(negated->args[1]);
      if (Expr index = rebuild_index(negated->binary, a, b)) return index;
    }
    return negated;
  }
  return with_args(model, args);
}

Expr ExprSimplifier::rebuild_index(BinaryOp op, const Expr& a, const Expr& b) {
  int64_t c = 0;
  switch (op) {
    case BinaryOp::k_add:
      return expr(affine(a) + affine(b));
    case BinaryOp::k_sub:
      return expr(affine(a) - affine(b));
    case BinaryOp::k_mul:
      if (as_const_int(b, &c)) return expr(affine(a) * c);
      if (as_const_int(a, &c)) return expr(affine(b) * c);
      return nullptr;
    case BinaryOp::k_div:
    case BinaryOp::k_idiv:
    case BinaryOp::k_fdiv:
      if (as_const_int(b, &c) && c > 0)
        if (auto division = divide(a, c, op != BinaryOp::k_fdiv)) return expr(division->quotient);
      return nullptr;
    case BinaryOp::k_mod:
    case BinaryOp::k_fmod:
      if (as_const_int(b, &c) && c > 0)
        if (auto division = divide(a, c, op == BinaryOp::k_fmod)) return expr(division->remainder);
      return nullptr;
    case BinaryOp::k_max:
    case BinaryOp::k_min:
      return min_max(op, a, b);
    default:
      return is_comparison(op) ? compare(op, a, b) : nullptr;
  }
}

Expr ExprSimplifier::rebuild_load(const Expr& model, const std::vector<Expr>& args) {
  const Buffer& buffer = model->buffer;
  bool guarded = args.size() == 3;
  int lanes = args[0]->type.lanes;
  Expr index = uniform_value(args[0]);
  if (lanes > 1 && index) {  // every lane reads one element
    Expr predicate = guarded ? uniform_value(args[1]) : nullptr;
    Expr otherwise = guarded ? uniform_value(args[2]) : nullptr;
    std::vector<Expr> scalars = {index};
    if (guarded) scalars.insert(scalars.end(), {predicate, otherwise});
    for (Expr& scalar : scalars) {
      if (!scalar) return with_args(model, args);
      scalar = intern(scalar);
    }
    return broadcast(intern(rebuild_load(model, scalars)), lanes);
  }
  // Reading a register is free and cannot fault, a select is cheaper than a branch around it.
  if (guarded && buffer->scope == Scope::kRegister && range(args[0]).within(0, buffer->size - 1))
    return select(args[1], load(buffer, args[0], lanes), args[2]);
  return with_args(model, args);
}

Expr ExprSimplifier::min_max(BinaryOp op, const Expr& a, const Expr& b) {
  if (!range(a).finite() || !range(b).finite()) return nullptr;
  Interval difference = range(affine(a) - affine(b));
  if (difference.lo >= 0) return op == BinaryOp::k_max ? a : b;
  if (difference.hi <= 0) return op == BinaryOp::k_max ? b : a;
  return nullptr;
}

// Comparisons become `x < y` with the constant and negative terms on the right, `==` or `!=`; decided ones a
// constant.
Expr ExprSimplifier::compare(BinaryOp op, const Expr& a, const Expr& b) {
  Affine difference = affine(a) - affine(b);
  Interval r = range(difference);
  if (!range(a).finite() || !range(b).finite() || !r.finite()) return nullptr;
  Affine one = Affine::of_constant(1, difference.lanes);
  switch (op) {
    case BinaryOp::k_lt:
      return is_negative(difference);
    case BinaryOp::k_le:
      return is_negative(difference - one);
    case BinaryOp::k_gt:
      return is_negative(difference * -1);
    case BinaryOp::k_ge:
      return is_negative(difference * -1 - one);
    default:
      break;
  }
  bool never = r.lo > 0 || r.hi < 0;
  bool always = r.lo == 0 && r.hi == 0;
  if (!never && !always) return nullptr;
  return const_int(DType::kBool, always == (op == BinaryOp::k_eq), difference.lanes);
}

Expr ExprSimplifier::is_negative(const Affine& given) {
  Affine d = given;
  // 16*i + v - 96 < 0 with v in [0, 16) is i - 6 < 0: what lies below the unit cannot change the sign.
  for (bool again = true; again && !d.is_constant();) {
    again = false;
    for (int64_t unit : factor_magnitudes(d)) {
      Affine rest, multiples = take_multiples(d, unit, &rest);
      if (!range(rest).within(0, unit - 1)) continue;
      d = multiples;
      again = true;
      break;
    }
  }
  Interval r = range(d);
  if (r.hi < 0 || r.lo >= 0) return const_int(DType::kBool, r.hi < 0, given.lanes);
  Affine left = Affine::of_constant(0, d.lanes), right = left;
  for (const Affine::Term& term : d.terms) {
    if (term.factor > 0)
      left.terms.push_back(term);
    else
      right.terms.push_back({term.atom, term.order, -term.factor});
  }
  (d.stride > 0 ? left.stride : right.stride) = d.stride > 0 ? d.stride : -d.stride;
  if (left.is_constant())
    left.constant = d.constant;
  else
    right.constant = -d.constant;
  if (d.stride == 0 && !has_vector_terms(d)) {  // no lane matters
    left.lanes = right.lanes = 1;
    return broadcast(intern(binary(BinaryOp::k_lt, expr(left), expr(right))), given.lanes);
  }
  return binary(BinaryOp::k_lt, expr(left), expr(right));
}

// any lane of `ramp(b, s, n) < broadcast(x)`: the smallest lane decides; all lanes: the largest.
Expr ExprSimplifier::reduce_comparison(const Expr& model, const Expr& x) {
  bool any = model->binary == BinaryOp::k_or, all = model->binary == BinaryOp::k_and;
  if (!(any || all) || !is_binary(x, BinaryOp::k_lt) || !is_index(x->args[0])) return nullptr;
  if (!range(x->args[0]).finite() || !range(x->args[1]).finite()) return nullptr;
  Affine difference = affine(x->args[0]) - affine(x->args[1]);
  if (has_vector_terms(difference) || !range(difference).finite()) return nullptr;
  bool last_lane = (difference.stride > 0) == all;
  if (last_lane) difference.constant += difference.stride * (difference.lanes - 1);
  difference.stride = 0;
  difference.lanes = 1;
  return is_negative(difference);
}

// ---- affine forms

Affine ExprSimplifier::atom(const Expr& e) {
  Affine a;
  a.lanes = e->type.lanes;
  a.terms.push_back({e, facts(e).order, 1});
  return a;
}

Affine ExprSimplifier::affine(const Expr& e) {
  int64_t c = 0;
  if (as_const_int(e, &c)) return Affine::of_constant(c, e->type.lanes);
  bool is_sum = is_binary(e, BinaryOp::k_add) || is_binary(e, BinaryOp::k_sub) ||
                (is_binary(e, BinaryOp::k_mul) && as_const_int(e->args[1], &c)) ||
                e->kind == ExprKind::kRamp || e->kind == ExprKind::kBroadcast;
  if (!is_sum) return atom(e);
  if (auto found = affine_memo_.find(e.get()); found != affine_memo_.end()) return found->second;
  Affine a = affine(e->args[0]);
  if (is_binary(e, BinaryOp::k_add)) a = a + affine(e->args[1]);
  if (is_binary(e, BinaryOp::k_sub)) a = a - affine(e->args[1]);
  if (is_binary(e, BinaryOp::k_mul)) a = a * c;
  a.lanes = e->type.lanes;
  if (e->kind == ExprKind::kRamp) a.stride = e->stride;
  if (a.terms.size() > kMaxTerms) a = atom(e);
  return affine_memo_[e.get()] = a;
}

// The terms that are scalars (with the constant), or those that are vectors; null when there are none.
Expr ExprSimplifier::sum(const Affine& a, bool vectors) {
  Expr total;
  auto product = [](const Expr& atom, int64_t factor) {
    return binary(BinaryOp::k_mul, atom, const_int(DType::kI64, factor, atom->type.lanes));
  };
  for (const Affine::Term& term : a.terms)
    if ((term.atom->type.lanes > 1) == vectors && term.factor > 0)
      total = total ? total + product(term.atom, term.factor) : product(term.atom, term.factor);
  bool constant_first = !vectors && !total && a.constant != 0;
  if (constant_first) total = const_index(a.constant);
  for (const Affine::Term& term : a.terms) {
    if ((term.atom->type.lanes > 1) != vectors || term.factor > 0) continue;
    total = total ? total - product(term.atom, -term.factor) : product(term.atom, term.factor);
  }
  if (vectors) return total;
  if (!total) return const_index(a.constant);
  return constant_first ? total : total + const_index(a.constant);
}

Expr ExprSimplifier::expr(Affine a) {
  a = recombine(std::move(a));
  Expr scalar = sum(a, false);
  if (a.lanes == 1) return intern(scalar);
  Expr lanes = ramp(scalar, a.stride, a.lanes);
  Expr vectors = sum(a, true);
  return intern(vectors ? vectors + lanes : lanes);
}

// c*(x/c) + x%c -> x, whenever that makes the sum shorter.
Affine ExprSimplifier::recombine(Affine a) {
  for (bool again = true; again;) {
    again = false;
    for (const Affine::Term& term : a.terms) {
      int64_t divisor = 0;
      if (!is_remainder_by_constant(term.atom, &divisor)) continue;
      Affine whole = affine(term.atom->args[0]) - quotient_of_remainder(term.atom) * divisor;
      Affine joined = a + (whole - atom(term.atom)) * term.factor;
      if (joined.terms.size() >= a.terms.size()) continue;
      a = std::move(joined);
      again = true;
      break;
    }
  }
  return a;
}

Affine ExprSimplifier::quotient_of_remainder(const Expr& remainder) {
  if (auto found = quotient_memo_.find(remainder.get()); found != quotient_memo_.end()) return found->second;
  int64_t divisor = 0;
  as_const_int(remainder->args[1], &divisor);
  bool truncates = remainder->binary == BinaryOp::k_fmod;
  std::optional<Division> division = divide(remainder->args[0], divisor, truncates);
  Affine quotient = division ? division->quotient
                             : atom(intern(binary(truncates ? BinaryOp::k_idiv : BinaryOp::k_fdiv,
                                                  remainder->args[0], remainder->args[1])));
  return quotient_memo_[remainder.get()] = quotient;
}

// ---- division by constants

// Nothing when the operand may wrap or, for truncating division, may be negative and inexact.
std::optional<ExprSimplifier::Division> ExprSimplifier::divide(const Expr& x, int64_t divisor,
                                                               bool truncates) {
  Affine a = affine(x);
  Interval r = range(a);
  if (!r.finite()) return std::nullopt;
  if (!truncates || r.lo >= 0) return floor_division(a, divisor);
  Affine rest, quotient = take_multiples(a, divisor, &rest);
  if (!rest.is_constant() || rest.constant != 0) return std::nullopt;
  return Division{quotient, rest};
}

ExprSimplifier::Division ExprSimplifier::floor_division(const Affine& a, int64_t divisor) {
  Affine rest, quotient = take_multiples(a, divisor, &rest);
  if (rest.is_constant()) return {quotient, rest};
  // Whole multiples of the divisor move to the quotient, until the rest starts in [0, divisor).
  Interval r = range(rest);
  int64_t shift = floor_divide(r.lo, divisor);
  quotient.constant += shift;
  rest.constant -= shift * divisor;
  r = range(rest);
  if (r.within(0, divisor - 1)) return {quotient, rest};
  // (m*x + y) / (m*n) is x / n when y is in [0, m).
  for (int64_t magnitude : factor_magnitudes(rest)) {
    int64_t unit = std::gcd(magnitude, divisor);
    if (unit == 1) continue;
    Affine below, multiples = take_multiples(rest, unit, &below);
    if (!range(below).within(0, unit - 1)) continue;
    Division inner = floor_division(multiples, divisor / unit);
    return {quotient + inner.quotient, inner.remainder * unit + below};
  }
  Division inner = opaque_division(rest, divisor);
  return {quotient + inner.quotient, inner.remainder};
}

// What stays a division: x/c and x%c as atoms. `a` is in no way negative, so that both roundings agree;
// truncation is what machines have.
ExprSimplifier::Division ExprSimplifier::opaque_division(const Affine& a, int64_t divisor) {
  Expr x = expr(a);
  Expr by = const_int(DType::kI64, divisor, x->type.lanes);
  Division result;
  if (std::optional<Affine> quotient = flatten_quotient(affine(x), divisor))
    result.quotient = *quotient;
  else
    result.quotient = atom(intern(binary(BinaryOp::k_idiv, x, by)));
  int64_t inner = 0;
  std::optional<Division> flattened;  // (y%a)%b -> y%b when b divides a
  if (is_remainder_by_constant(x, &inner) && inner % divisor == 0)
    flattened = divide(x->args[0], divisor, range(x->args[0]).lo >= 0);
  if (flattened)
    result.remainder = flattened->remainder;
  else
    result.remainder = atom(intern(binary(BinaryOp::k_fmod, x, by)));
  return result;
}

// (y/a + z) / b -> (y + a*z) / (a*b), for flattened shapes are divided in steps.
std::optional<Affine> ExprSimplifier::flatten_quotient(const Affine& a, int64_t divisor) {
  for (const Affine::Term& term : a.terms) {
    int64_t inner = 0, product = 0;
    if (term.factor != 1 || !is_quotient_by_constant(term.atom, &inner)) continue;
    if (__builtin_mul_overflow(inner, divisor, &product)) continue;
    const Expr& y = term.atom->args[0];
    if (term.atom->binary == BinaryOp::k_idiv && range(y).lo < 0) continue;  // rounds up there
    Affine dividend = affine(y) + (a - atom(term.atom)) * inner;
    Interval r = range(dividend);
    if (r.finite() && r.lo >= 0) return floor_division(dividend, product).quotient;
  }
  return std::nullopt;
}

// ---- ranges

Interval ExprSimplifier::range(const Affine& a) {
  Interval total = Interval::of(a.constant) + hull({0, 0}, Interval::of(a.lanes - 1) * a.stride);
  for (const Affine::Term& term : a.terms) total = total + range(term.atom) * term.factor;
  return total;
}

Interval ExprSimplifier::range(const Expr& e) {
  if (!is_index(e)) return {};
  if (auto found = range_memo_.find(e.get()); found != range_memo_.end()) return found->second;
  Affine a = affine(e);
  bool opaque = a.terms.size() == 1 && a.terms[0].atom == e;
  Interval r = opaque ? atom_range(e) : range(a);
  return range_memo_[e.get()] = r;
}

Interval ExprSimplifier::atom_range(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kVar: {
      auto found = bounds_.find(e->var.get());
      return found == bounds_.end() ? Interval{} : found->second;
    }
    case ExprKind::kSymbol:
      return kSymbolRange;
    case ExprKind::kCast:
      return dtype_range(e->args[0]->type.dtype);
    case ExprKind::kSelect:
      return hull(range(e->args[1]), range(e->args[2]));
    case ExprKind::kBinary:
      return binary_range(*e, range(e->args[0]), range(e->args[1]));
    default:
      return {};
  }
}

}  // namespace quernel::loop
