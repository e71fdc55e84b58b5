#include "codegen/text/c_like_printer.h"

#include <algorithm>

#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;
using loop::StmtKind;

CLikePrinter::CLikePrinter(const loop::Kernel& kernel, TextLanguage language, size_t longest,
                           std::string scalar_lane)
    : kernel_(kernel),
      spelling_(spelling_of(language)),
      longest_(longest),
      scalar_lane_(std::move(scalar_lane)) {}

void CLikePrinter::line(const std::string& text) { out_ += margin(own_.indent) + text + "\n"; }
void CLikePrinter::open(const std::string& head) {
  line(head + " {");
  ++own_.indent;
}
void CLikePrinter::close() {
  --own_.indent;
  line("}");
}

std::string CLikePrinter::free_name(const std::string& wanted, const std::string& separator) {
  std::string free = wanted;
  for (int i = 2; !taken_.insert(free).second; ++i) free = wanted + separator + std::to_string(i);
  return free;
}

// ---- statements

void CLikePrinter::begin_statement(std::initializer_list<loop::Expr> roots) {
  own_.names.clear();
  uses_.clear();
  std::function<void(const loop::Expr&)> count = [&](const loop::Expr& e) {
    if (++uses_[e.get()] > 1) return;
    for (const loop::Expr& arg : e->args) count(arg);
  };
  for (const loop::Expr& root : roots)
    if (root) count(root);
}

void CLikePrinter::statement(const loop::StmtNode& s) {
  switch (s.kind) {
    case StmtKind::kBlock:
      for (const loop::Stmt& child : s.body) statement(*child);
      return;
    case StmtKind::kFor:
      return print_for(s);
    case StmtKind::kIf:
      return print_if(s);
    case StmtKind::kLet:
      return print_let(s);
    case StmtKind::kStore:
      return print_store(s);
    case StmtKind::kAlloc:
      return print_alloc(*s.buffer);
    case StmtKind::kPrefetch:
      return;  // neither C nor GLSL has it
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
      return print_matrices(s);
    case StmtKind::kBarrier:
      return print_barrier();
  }
}

// ---- names

std::string CLikePrinter::define(const std::string& type, const std::string& text, Sink& sink) {
  std::string name = "t" + std::to_string(next_name_++);
  *sink.out += margin(sink.indent) + type + " " + name + " = " + text + ";\n";
  return name;
}

// What all lanes share is computed before them, in the function's body.
std::string CLikePrinter::value(const loop::Expr& e, const Place& at) {
  bool is_scalar = e->type.lanes == 1;
  if (is_scalar && at.sink != &own_) {
    bool simple = e->kind == ExprKind::kConst || e->kind == ExprKind::kVar || e->kind == ExprKind::kSymbol;
    return simple ? value(e, scalar_place()) : atom(e, scalar_place());
  }
  const Place& place = is_scalar ? scalar_place() : at;
  auto known = place.sink->names.find({e.get(), place.lane});
  if (known != place.sink->names.end()) return known->second;
  std::string text = print_expr(e, place);
  auto uses = uses_.find(e.get());
  bool is_repeated =
      uses != uses_.end() && uses->second > 1 && (e->kind != ExprKind::kConst || spelling_.names_constants);
  if (!is_word(text) && (is_repeated || text.size() > longest_))
    place.sink->names[{e.get(), place.lane}] = text = define(variable_type(e), text, *place.sink);
  return text;
}

std::string CLikePrinter::atom(const loop::Expr& e, const Place& at) {
  std::string text = value(e, at);
  if (is_word(text) || e->kind == ExprKind::kConst) return text;
  const Place& place = e->type.lanes == 1 ? scalar_place() : at;
  return place.sink->names[{e.get(), place.lane}] = define(variable_type(e), text, *place.sink);
}

// ---- expressions

std::string CLikePrinter::print_expr(const loop::Expr& node, const Place& at) {
  const loop::ExprNode& e = *node;
  switch (e.kind) {
    case ExprKind::kConst:
      return constant(e);
    case ExprKind::kVar:
      return variable(e, at);
    case ExprKind::kSymbol:
      return symbol(e.symbol);
    case ExprKind::kLoad:
      return load(e, at);
    case ExprKind::kUnary:
      return unary(e, at);
    case ExprKind::kBinary:
      return binary(node, at);
    case ExprKind::kMulAcc:
      return mul_acc(e, at);
    case ExprKind::kSelect:
      return select(node, at);
    case ExprKind::kCast:
      return cast(node, at);
    case ExprKind::kBitcast:
      return bit_cast(e, at);
    case ExprKind::kRamp:
      return ramp(node, at);
    case ExprKind::kBroadcast:
      return value(e.args[0], at);
    case ExprKind::kReduceLanes:
      return reduce_lanes(e);
    case ExprKind::kInterleave:
      return interleave(e, at);
    case ExprKind::kDot:
      return dot(e, at);
    case ExprKind::kDot2x2:
      return dot_2x2(e, at);
  }
  QUERNEL_UNREACHABLE("expression kind");
}

std::string CLikePrinter::unary(const loop::ExprNode& e, const Place& at) {
  DType dtype = e.args[0]->type.dtype;
  std::string x = value(e.args[0], at);
  bool inverts = e.unary == UnaryOp::k_not || e.unary == UnaryOp::k_bit_not;
  if (is_predicate(e.unary) && !is_float(dtype)) return never(x);
  if (dtype == DType::kBool) return inverts || e.unary == UnaryOp::k_neg ? "(!" + x + ")" : x;
  if (is_integer(dtype)) {
    if (inverts) return complement(dtype, x);
    if (e.unary == UnaryOp::k_floor || e.unary == UnaryOp::k_ceil || e.unary == UnaryOp::k_round ||
        e.unary == UnaryOp::k_trunc)
      return x;
  }
  if (is_wide_float(dtype) && e.unary == UnaryOp::k_neg) return "(-" + x + ")";
  return call(e, {x});
}

std::string CLikePrinter::binary(const loop::Expr& node, const Place& at) {
  const loop::ExprNode& e = *node;
  DType dtype = e.args[0]->type.dtype;
  if (is_integer(dtype) && !is_comparison(e.binary)) return integer_binary(node, at);
  std::string a = value(e.args[0], at), b = value(e.args[1], at);
  if (dtype == DType::kBool) return bool_text(spelling_, e.binary, a, b);
  if (const char* op = operator_text(e.binary, dtype))
    return is_comparison(e.binary) ? compare(e, a, b) : infix_text(a, op, b);
  // The machine-code form has an accumulator second, too (KernelEmitter::binary).
  const loop::ExprNode& left = *e.args[0];
  bool is_extreme = e.binary == BinaryOp::k_max || e.binary == BinaryOp::k_min;
  if (is_extreme && left.kind == ExprKind::kLoad && left.buffer->scope == loop::Scope::kRegister) {
    loop::ExprNode swapped = e;
    std::swap(swapped.args[0], swapped.args[1]);
    return call(swapped, {b, a});
  }
  return call(e, {a, b});
}

std::string CLikePrinter::integer_binary(const loop::Expr& node, const Place& at) {
  const loop::ExprNode& e = *node;
  if (e.binary == BinaryOp::k_max || e.binary == BinaryOp::k_min) return integer_extreme(node, at);
  if (const char* op = operator_text(e.binary, e.type.dtype)) return integer_infix(node, op, at);
  if (const char* op = division_text(e)) return integer_infix(node, op, at);
  if (std::string text = integer_form(node, at); !text.empty()) return text;
  return integer_call(node, call(e, {value(e.args[0], at), value(e.args[1], at)}));
}

// The operator of a division or remainder of indices whose result is the language's; else null.
const char* CLikePrinter::division_text(const loop::ExprNode& e) {
  bool divides = e.binary == BinaryOp::k_idiv || e.binary == BinaryOp::k_fdiv || e.binary == BinaryOp::k_div;
  bool remains = e.binary == BinaryOp::k_mod || e.binary == BinaryOp::k_fmod;
  bool floors = e.binary == BinaryOp::k_fdiv || e.binary == BinaryOp::k_mod;
  int64_t divisor = 0;
  if (e.type.dtype != DType::kI64 || !(divides || remains)) return nullptr;
  if (!loop::as_const_int(e.args[1], &divisor) || divisor <= 0) return nullptr;
  if ((floors || !spelling_.divides_negatives) && ranges_(e.args[0]).lo < 0) return nullptr;
  return divides ? "/" : "%";
}

// f16 and bf16 are computed in f32 and rounded after every operation, by a function.
std::string CLikePrinter::mul_acc(const loop::ExprNode& e, const Place& at) {
  DType dtype = e.type.dtype;
  if (std::string text = fused_narrow(e, at); !text.empty()) return text;
  std::string a = value(e.args[0], at), b = value(e.args[1], at), c = value(e.args[2], at);
  if (dtype == DType::kBool) return infix_text(infix_text(a, spelling_.both, b), spelling_.either, c);
  if (is_wide_float(dtype)) return fused(dtype, a, b, c);
  return is_float(dtype) ? call(e, {a, b, c}) : integer_mul_acc(e, a, b, c);
}

std::string CLikePrinter::cast(const loop::Expr& node, const Place& at) {
  const loop::ExprNode& e = *node;
  DType from = e.args[0]->type.dtype, to = e.type.dtype;
  if (is_integer(from) && is_integer(to))
    if (std::string text = integer_form(node, at); !text.empty()) return text;
  std::string x = value(e.args[0], at);
  if (from == to) return x;
  bool is_plain = is_wide_float(from) || !is_float(from);
  if (to == DType::kBool && is_plain) return infix_text(x, "!=", zero(from));
  if (is_plain && is_wide_float(to)) return converted(spelling_, type_name(to), x);
  return is_float(from) || is_float(to) ? call(e, {x}) : integer_cast(node, x);
}

// ---- functions

std::string CLikePrinter::call(const loop::ExprNode& e, const std::vector<std::string>& operands) {
  auto operation = std::make_shared<loop::ExprNode>(e);
  operation->type.lanes = 1;
  std::string text;
  for (size_t i = 0; i < operation->args.size(); ++i) {
    const loop::Expr arg = operation->args[i];
    // Powers, and which zero is the larger one, depend on constants.
    if (const loop::ExprNode* number = as_constant(arg); number && is_float(arg->type.dtype)) {
      operation->args[i] = loop::const_bits(arg->type.with_lanes(1), number->bits);
      continue;
    }
    auto parameter = std::make_shared<loop::VarNode>();
    parameter->name = "x" + std::to_string(i);
    parameter->type = arg->type.with_lanes(1);
    operation->args[i] = loop::var_ref(parameter);
    text += (text.empty() ? "" : ", ") + argument(arg->type.dtype, operands[i]);
  }
  return result(e.type.dtype, name_of(operation) + "(" + text + ")");
}

std::string CLikePrinter::call(BinaryOp op, DType dtype, const std::string& a, const std::string& b) {
  loop::ExprNode operation;
  operation.kind = ExprKind::kBinary;
  operation.binary = op;
  operation.type = {dtype, 1};
  for (int i = 0; i < 2; ++i) {
    auto var = std::make_shared<loop::VarNode>();
    var->type = {dtype, 1};
    operation.args.push_back(loop::var_ref(var));
  }
  return call(operation, {a, b});
}

// ---- questions

const loop::ExprNode* CLikePrinter::as_constant(const loop::Expr& e) {
  if (e->kind == ExprKind::kConst) return e.get();
  return e->kind == ExprKind::kBroadcast ? as_constant(e->args[0]) : nullptr;
}

bool CLikePrinter::contains(const loop::Expr& e,
                            const std::function<bool(const loop::ExprNode&)>& is_wanted) {
  std::unordered_set<const loop::ExprNode*> seen;
  std::function<bool(const loop::Expr&)> visit = [&](const loop::Expr& x) {
    if (!x || !seen.insert(x.get()).second) return false;
    return is_wanted(*x) || std::any_of(x->args.begin(), x->args.end(), visit);
  };
  return visit(e);
}

}  // namespace quernel::codegen
