// Loads of several elements at once: neighbours that an invocation reads of packed columns (lower, place_of_lane) or of a
// row, where the first one is known to lie at a multiple of their size.
#include <functional>

#include "codegen/spirv/shader_printer.h"
#include "schemas/kernel_abi.h"

namespace quernel::codegen {

using loop::Expr;
using loop::ExprKind;
using loop::StmtKind;

namespace {

// An index as a constant and what is added to it.
struct Sum {
  int64_t constant = 0;
  std::vector<Expr> addends;
};
void add_to(Sum& sum, const Expr& e) {
  int64_t n = 0;
  if (loop::as_const_int(e, &n)) {
    sum.constant += n;
  } else if (e->kind == ExprKind::kBinary && e->binary == BinaryOp::k_add) {
    for (const Expr& arg : e->args) add_to(sum, arg);
  } else {
    sum.addends.push_back(e);
  }
}

}  // namespace

void ShaderPrinter::forget_loaded() {
  std::erase_if(loaded_, [&](const auto& entry) { return entry.second.indent >= own_.indent; });
}

void ShaderPrinter::close() {
  forget_loaded();
  CLikePrinter::close();
}

void ShaderPrinter::find_settled(const loop::StmtNode& s) {
  const loop::BufferNode* b = s.buffer.get();
  int64_t n = 0;
  if (s.kind == StmtKind::kStore && b->scope != loop::Scope::kGlobal && b->dtype == DType::kI64) {
    if (s.value->type.lanes > 1 || s.condition || !loop::as_const_int(s.index, &n))
      unsettled_.insert(b);
    else if (!settled_.try_emplace({b, n}, s.value).second)
      unsettled_.insert(b);
  }
  for (const loop::Stmt& child : s.body)
    if (child) find_settled(*child);
}

// Returns the value of an element that is stored once; null if there may be several.
Expr ShaderPrinter::settled(const Expr& e) const {
  int64_t n = 0;
  if (e->kind != ExprKind::kLoad || e->args.size() > 1 || unsettled_.contains(e->buffer.get()) ||
      !loop::as_const_int(e->args[0], &n))
    return nullptr;
  const auto found = settled_.find({e->buffer.get(), n});
  return found == settled_.end() ? nullptr : found->second;
}

bool ShaderPrinter::is_multiple_of(const Expr& e, int64_t of) const {
  if (const Expr value = settled(e)) return is_multiple_of(value, of);
  int64_t n = 0;
  if (loop::as_const_int(e, &n)) return n % of == 0;
  if (e->kind != ExprKind::kBinary || e->type.dtype != DType::kI64) return false;
  const bool a = is_multiple_of(e->args[0], of), b = is_multiple_of(e->args[1], of);
  if (e->binary == BinaryOp::k_mul) return a || b;
  return (e->binary == BinaryOp::k_add || e->binary == BinaryOp::k_sub) && a && b;
}

// Returns what tells expressions apart that variables, symbols and constants determine; empty where memory that changes
// takes part.
std::string ShaderPrinter::identity(const Expr& e) const {
  switch (e->kind) {
    case ExprKind::kConst:
      return std::to_string(e->bits);
    case ExprKind::kVar:
      return "v" + std::to_string(reinterpret_cast<uintptr_t>(e->var.get()));
    case ExprKind::kSymbol:
      return "s" + std::to_string(e->symbol);
    case ExprKind::kLoad:
      return settled(e) ? "b" + std::to_string(reinterpret_cast<uintptr_t>(e->buffer.get())) + " " +
                              identity(e->args[0])
                        : "";
    case ExprKind::kBinary: {
      const std::string a = identity(e->args[0]), b = identity(e->args[1]);
      if (a.empty() || b.empty()) return "";
      return "(" + a + " " + std::to_string(static_cast<int>(e->binary)) + " " + b + ")";
    }
    default:
      return "";
  }
}

ShaderPrinter::OneOfSeveral ShaderPrinter::one_of_several(const loop::ExprNode& e) const {
  constexpr int kMost = 4;
  const loop::BufferNode& b = *e.buffer;
  const bool is_word = b.dtype == DType::kF32 || b.dtype == DType::kI32 || b.dtype == DType::kU32,
             is_half = b.dtype == DType::kF16 || b.dtype == DType::kBF16 || b.dtype == DType::kU16;
  if (b.scope != loop::Scope::kGlobal || b.access != loop::Access::kRead || !b.aligned || b.overlaps ||
      may_be_split(b) || distribution_.exchanged.contains(&b) || !(is_word || is_half) || e.args.size() > 1)
    return {};
  const Expr& index = e.args[0];
  const bool is_vector = e.type.lanes > 1;
  if (is_vector && (index->kind != ExprKind::kRamp || (index->stride != 2 && index->stride != kMost) ||
                    e.type.lanes != distribution_.invocations))
    return {};
  OneOfSeveral one{.count = is_vector ? static_cast<int>(index->stride) : kMost};
  if (b.size % one.count != 0) return {};
  one.first = is_vector ? index->args[0] : index;
  Sum sum;
  add_to(sum, one.first);
  one.which = static_cast<int>((sum.constant % one.count + one.count) % one.count);
  one.key =
      std::to_string(b.binding) + (is_vector ? " lanes " : " ") + std::to_string(sum.constant - one.which);
  for (const Expr& addend : sum.addends) {
    const std::string text = is_multiple_of(addend, one.count) ? identity(addend) : "";
    if (text.empty()) return {};
    one.key += " " + text;
  }
  const std::string n = std::to_string(one.count), of = b.dtype == DType::kF32   ? ""
                                                        : b.dtype == DType::kI32 ? "i"
                                                                                 : "u";
  one.type = is_word ? of + "vec" + n : one.count == kMost ? "uvec2" : "uint";
  return one;
}

void ShaderPrinter::find_neighbours(const loop::StmtNode& s) {
  std::unordered_set<const loop::ExprNode*> seen;
  std::function<void(const Expr&)> visit = [&](const Expr& e) {
    if (!e || !seen.insert(e.get()).second) return;
    if (e->kind == ExprKind::kLoad)
      if (const OneOfSeveral one = one_of_several(*e); one.count != 0) neighbours_[one.key].insert(one.which);
    for (const Expr& arg : e->args) visit(arg);
  };
  for (const Expr* e : {&s.extent, &s.condition, &s.index, &s.value}) visit(*e);
  for (const loop::Stmt& child : s.body)
    if (child) find_neighbours(*child);
}

std::string ShaderPrinter::load_of_several(const loop::ExprNode& e, const Place& at) {
  if (at.lane != kLane || at.sink != &own_) return "";
  const OneOfSeveral one = one_of_several(e);
  if (one.count == 0 || neighbours_[one.key].size() < 2) return "";
  auto known = loaded_.find(one.key);
  if (known == loaded_.end()) {
    const std::string view = "several_" + one.type, binding = std::to_string(e.buffer->binding);
    if (wide_views_.insert(view).second)
      views_ += "layout(set = 0, binding = 0) readonly buffer Of_" + view + " { " + one.type + " at[]; } " +
                view + "[" + std::to_string(QNL_SPIRV_WINDOWS) + "];\n";
    const std::string first = low_word(one.first, scalar_place());
    const std::string place = "(first_" + binding + " + uint(" + first + ")) / " + std::to_string(one.count) +
                              "u" + (e.type.lanes > 1 ? " + uint(lane)" : "");
    const std::string name = define(one.type, view + "[window_" + binding + "].at[" + place + "]", own_);
    known = loaded_.emplace(one.key, Loaded{own_.indent, name}).first;
  }
  const std::string& name = known->second.name;
  if (element_size(e.buffer->dtype) == 4) return name + "." + "xyzw"[one.which];
  const std::string word = one.count == 4 ? name + (one.which < 2 ? ".x" : ".y") : name;
  return one.which % 2 == 0 ? "(" + word + " & 65535u)" : "(" + word + " >> 16u)";
}

}  // namespace quernel::codegen
