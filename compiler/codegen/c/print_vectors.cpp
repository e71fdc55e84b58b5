// Vectors of a processor with MVE: values of their own, qnl_i32x4 and others, in place of loops over lanes. The prelude
// has their operations as instructions and, for any other machine, as loops. Four bytes are held in four words.
#include <algorithm>

#include "codegen/c/kernel_printer.h"
#include "codegen/c/upper_half.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::Expr;
using loop::ExprKind;
using loop::ExprNode;
using loop::StmtKind;

namespace {

constexpr int kWords = 4, kBytes = 16, kWordBits = 32;
constexpr size_t kLongestVector = 88;  // characters; what is longer gets a name

bool is_contiguous(const Expr& index) { return index->kind == ExprKind::kRamp && index->stride == 1; }

// Four elements of a register buffer, at a constant multiple of four.
bool is_aligned_quarter(const Expr& index) {
  int64_t base = 0;
  return is_contiguous(index) && index->type.lanes == kWords && loop::as_const_int(index->args[0], &base) &&
         base % kWords == 0;
}

std::string type_suffix(loop::Type type) {
  return std::string(quernel::to_string(type.dtype)) + "x" + std::to_string(type.lanes);
}

}  // namespace

std::string KernelPrinter::vector_type(loop::Type type) const {
  return type.lanes == kBytes ? "qnl_" + type_suffix(type) : "qnl_i32x4";
}

Expr KernelPrinter::without_alias(const Expr& e) const {
  if (e->kind != ExprKind::kVar) return e;
  auto alias = aliases_.find(e->var.get());
  return alias == aliases_.end() ? e : without_alias(alias->second);
}

// Whether `e` is printed as a vector of its own.
bool KernelPrinter::is_vector(const Expr& x) {
  bool is_held = x->type.lanes == kWords ? x->type.dtype == DType::kI32 || is_byte(x->type.dtype)
                                         : x->type.lanes == kBytes && is_byte(x->type.dtype);
  if (!has_vectors_ || mask_ || !is_held) return false;
  const Expr e = without_alias(x);
  auto operands = [&] {
    return std::all_of(e->args.begin(), e->args.end(), [&](const Expr& arg) { return is_vector(arg); });
  };
  const bool is_words = e->type.dtype == DType::kI32;
  switch (e->kind) {
    case ExprKind::kConst:
    case ExprKind::kVar:
      return true;
    case ExprKind::kBroadcast:
      return true;
    case ExprKind::kLoad: {
      int64_t base = 0;
      bool is_register = e->buffer->scope == loop::Scope::kRegister;
      return e->args.size() == 1 && is_contiguous(e->args[0]) &&
             (!is_register || (is_words && loop::as_const_int(e->args[0]->args[0], &base)));
    }
    case ExprKind::kMulAcc:
      return is_words && operands();
    case ExprKind::kBinary:
      switch (e->binary) {
        case BinaryOp::k_add:
        case BinaryOp::k_sub:
        case BinaryOp::k_mul:
        case BinaryOp::k_max:
        case BinaryOp::k_min:
          return is_words && operands();
        case BinaryOp::k_shl:
        case BinaryOp::k_shr:
          return is_words && is_below(e->args[1], kWordBits) && operands();
        default:
          return false;
      }
    case ExprKind::kCast: {
      const loop::Type from = e->args[0]->type;
      if (e->type.lanes != kWords) return false;
      if (!is_words) return from.dtype == DType::kI32 && is_vector(e->args[0]);
      if (is_byte(from.dtype)) return is_vector(e->args[0]);
      std::optional<UpperHalf> half = upper_half(*e);
      return half && is_vector(half->a) && is_vector(half->b);
    }
    default:
      return false;
  }
}

std::string KernelPrinter::loaded_vector(loop::Type type, const std::string& pointer) {
  return "qnl_load_" + type_suffix(type) + "(" + pointer + ")";
}

// C compilers make an offset of a constant that is added last.
std::string KernelPrinter::address(const std::string& pointer, const Expr& index) {
  int64_t offset = 0;
  bool adds = index->kind == ExprKind::kBinary && index->binary == BinaryOp::k_add;
  if (!adds || !loop::as_const_int(index->args[1], &offset) || offset < 0)
    return pointer + " + " + scalar(index);
  return pointer + " + " + scalar(index->args[0]) + " + " + std::to_string(offset);
}

// Requires is_vector.
std::string KernelPrinter::vector(const Expr& x) {
  const Expr e = without_alias(x);
  auto known = own_.names.find({e.get(), "vector"});
  if (known != own_.names.end()) return known->second;
  std::string text = vector_text(e);
  if (text.size() > kLongestVector)
    text = own_.names[{e.get(), "vector"}] = define("const " + vector_type(e->type), text, own_);
  return text;
}

std::string KernelPrinter::shifted(const Expr& e, const std::string& x) {
  int64_t count = 0;
  const std::string name = e->binary == BinaryOp::k_shl ? "qnl_shl" : "qnl_shr";
  if (!loop::as_const_int(e->args[1], &count)) return name + "_i32x4(" + x + ", " + vector(e->args[1]) + ")";
  return count == 0 ? x : name + "_n_i32x4(" + x + ", " + std::to_string(count) + ")";
}

std::string KernelPrinter::vector_text(const Expr& e) {
  auto call_of = [&](const char* name, const std::string& a, const std::string& b) {
    return "qnl_" + std::string(name) + "_i32x4(" + a + ", " + b + ")";
  };
  const std::string splat = e->type.lanes == kBytes ? "qnl_splat_" + type_suffix(e->type) : "qnl_splat_i32x4";
  switch (e->kind) {
    case ExprKind::kConst:
      return splat + "(" + constant(*e) + ")";
    case ExprKind::kBroadcast:
      return splat + "(" + scalar(e->args[0]) + ")";
    case ExprKind::kVar: {
      const std::string& name = vars_.at(e->var.get());
      return vector_vars_.contains(e->var.get()) ? name : loaded_vector(e->type, name);
    }
    case ExprKind::kLoad: {
      const std::string& name = buffer_name(*e->buffer);
      const Expr& base = e->args[0]->args[0];
      int64_t first = 0;
      if (e->buffer->scope != loop::Scope::kRegister || !loop::as_const_int(base, &first))
        return loaded_vector(e->type, address(name, base));
      if (vector_buffers_.contains(e->buffer.get())) return name + "[" + std::to_string(first / kWords) + "]";
      std::string elements;
      for (int i = 0; i < kWords; ++i)
        elements += (i == 0 ? "" : ", ") + name + "[" + std::to_string(first + i) + "]";
      return "qnl_make_i32x4(" + elements + ")";
    }
    case ExprKind::kMulAcc: {
      std::string a = vector(e->args[0]), b = vector(e->args[1]), c = vector(e->args[2]);
      return call_of("add", c, call_of("mul", a, b));
    }
    case ExprKind::kBinary: {
      std::string a = vector(e->args[0]);
      if (e->binary == BinaryOp::k_shl || e->binary == BinaryOp::k_shr) return shifted(e, a);
      return call_of(std::string(to_string(e->binary)).c_str(), a, vector(e->args[1]));
    }
    case ExprKind::kCast: {
      if (is_byte(e->type.dtype)) return "qnl_wrap_" + type_suffix(e->type) + "(" + vector(e->args[0]) + ")";
      if (is_byte(e->args[0]->type.dtype)) return vector(e->args[0]);
      std::optional<UpperHalf> half = upper_half(*e);
      // Nodes of this function's own live as long as the names of nodes.
      std::string factors[2];
      for (int i = 0; i < 2; ++i) {
        made_.push_back(i == 0 ? half->a : half->b);
        factors[i] = vector(made_.back());
      }
      std::string text = call_of("mulh", factors[0], factors[1]);
      if (half->shift == 0) return text;
      return "qnl_shr_n_i32x4(" + text + ", " + std::to_string(half->shift) + ")";
    }
    default:
      QUERNEL_UNREACHABLE("is_vector");
  }
}

// A sum plus the products of all lanes of two vectors of bytes; empty if `e` is something else.
std::string KernelPrinter::sum_of_lanes(const ExprNode& e) {
  if (!has_vectors_ || mask_ || e.binary != BinaryOp::k_add || e.type != loop::Type{DType::kI32, 1})
    return "";
  for (size_t i : {1, 0}) {
    const ExprNode& lanes = *e.args[i];
    if (lanes.kind != ExprKind::kReduceLanes || lanes.binary != BinaryOp::k_add) continue;
    const ExprNode& products = *lanes.args[0];
    if (products.kind != ExprKind::kBinary || products.binary != BinaryOp::k_mul) continue;
    const Expr &a = products.args[0], &b = products.args[1];
    if (a->kind != ExprKind::kCast || b->kind != ExprKind::kCast) continue;
    const loop::Type bytes = a->args[0]->type;
    if (bytes.lanes != kBytes || b->args[0]->type != bytes || !is_vector(a->args[0]) ||
        !is_vector(b->args[0]))
      continue;
    std::string sum = scalar(e.args[1 - i]), left = vector(a->args[0]), right = vector(b->args[0]);
    return "qnl_sum_" + type_suffix(bytes) + "(" + sum + ", " + left + ", " + right + ")";
  }
  return "";
}

bool KernelPrinter::let_vector(const loop::StmtNode& s) {
  const Expr& x = s.value;
  if (x->type.lanes == 1 || !is_vector(x)) return false;
  // Bounds, and words that become bytes, where they are stored.
  bool narrows = x->kind == ExprKind::kCast && is_byte(x->type.dtype);
  bool bounds = x->kind == ExprKind::kBinary && x->args[1]->kind == ExprKind::kConst &&
                (x->binary == BinaryOp::k_max || x->binary == BinaryOp::k_min);
  if ((narrows || bounds) && x->args[0]->kind == ExprKind::kVar && references_[s.var.get()] == 1) {
    aliases_[s.var.get()] = x;
    return true;
  }
  std::string text = vector(x);
  vector_vars_.insert(s.var.get());
  // C compilers do not know what intrinsics load from, and load again behind each store.
  bool stays = !contains(x, [&](const ExprNode& e) {
    return e.kind == ExprKind::kLoad && !constant_buffers_.contains(e.buffer.get());
  });
  if (stays) {
    auto [same, is_new] = vector_texts_.try_emplace(text, "");
    if (is_new) same->second = vars_[s.var.get()] = declare(s.var->name);
    vars_[s.var.get()] = same->second;
    if (!is_new) return true;
    line("const " + vector_type(x->type) + " " + same->second + " = " + text + ";");
    return true;
  }
  line("const " + vector_type(x->type) + " " + (vars_[s.var.get()] = declare(s.var->name)) + " = " + text +
       ";");
  return true;
}

bool KernelPrinter::store_vector(const loop::StmtNode& s) {
  const std::string& name = buffer_name(*s.buffer);
  if (vector_buffers_.contains(s.buffer.get())) {
    int64_t first = 0;
    loop::as_const_int(s.index->args[0], &first);
    std::string x =
        is_vector(s.value) ? vector(s.value) : loaded_vector(s.value->type, materialize(s.value, "r"));
    line(name + "[" + std::to_string(first / kWords) + "] = " + x + ";");
    return true;
  }
  if (s.buffer->scope == loop::Scope::kRegister || !is_contiguous(s.index) || !is_vector(s.value))
    return false;
  Expr value = without_alias(s.value);
  std::string to = address(name, s.index->args[0]), saturated;
  if (value->kind == ExprKind::kCast && is_byte(value->type.dtype)) {
    value = without_alias(value->args[0]);
    if (Expr x = s.value->type.dtype == DType::kI8 ? before_saturation(value) : nullptr) {
      value = x;
      saturated = "saturated_";
    }
  }
  line("qnl_store_" + saturated + type_suffix(s.value->type) + "(" + to + ", " + vector(value) + ");");
  return true;
}

// What `e` saturates to the range of an i8; null if it is something else.
Expr KernelPrinter::before_saturation(const Expr& e) const {
  auto bounded = [&](const Expr& x, BinaryOp op, int64_t end) -> Expr {
    int64_t number = 0;
    if (!x || x->kind != ExprKind::kBinary || x->binary != op || x->type.dtype != DType::kI32 ||
        !loop::as_const_int(x->args[1], &number) || number != end)
      return nullptr;
    return without_alias(x->args[0]);
  };
  if (Expr x = bounded(bounded(e, BinaryOp::k_min, INT8_MAX), BinaryOp::k_max, INT8_MIN)) return x;
  return bounded(bounded(e, BinaryOp::k_max, INT8_MIN), BinaryOp::k_min, INT8_MAX);
}

// Register buffers that are read and written by four elements at a time.
void KernelPrinter::find_vector_buffers() {
  if (!has_vectors_ || !kernel_.body) return;
  std::unordered_set<const loop::BufferNode*> others;
  std::unordered_set<const ExprNode*> seen;
  std::function<void(const Expr&)> read = [&](const Expr& e) {
    if (!e || !seen.insert(e.get()).second) return;
    if (e->kind == ExprKind::kLoad && (e->args.size() != 1 || !is_aligned_quarter(e->args[0])))
      others.insert(e->buffer.get());
    for (const Expr& arg : e->args) read(arg);
  };
  std::function<void(const loop::StmtNode&)> visit = [&](const loop::StmtNode& s) {
    for (const Expr& e : {s.extent, s.condition, s.index, s.value}) read(e);
    if (s.kind == StmtKind::kStore && (s.condition || !is_aligned_quarter(s.index)))
      others.insert(s.buffer.get());
    if (s.kind == StmtKind::kAlloc && s.buffer->scope == loop::Scope::kRegister &&
        s.buffer->dtype == DType::kI32 && s.buffer->size % kWords == 0)
      vector_buffers_.insert(s.buffer.get());
    for (const loop::Stmt& child : s.body)
      if (child) visit(*child);
  };
  visit(*kernel_.body);
  for (const loop::BufferNode* b : others) vector_buffers_.erase(b);
}

// One lane of what is a vector.
std::string KernelPrinter::lane_of(loop::Type type, const std::string& text, const Place& at) {
  std::string lane = (type.lanes == kBytes ? "qnl_lane_" + type_suffix(type) : "qnl_lane_i32x4") + "(" +
                     text + ", " + at.lane + ")";
  return type.lanes == kBytes || type.dtype == DType::kI32 ? lane : "(" + type_name(type.dtype) + ")" + lane;
}

}  // namespace quernel::codegen
