// The function around a kernel, its loops over the grid, and statements.
#include "codegen/c/kernel_printer.h"

#include <algorithm>
#include <cctype>

#include "codegen/c/program_printer.h"
#include "codegen/llvm/check_kernel.h"
#include "codegen/text/if_text.h"
#include "loop/print.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;
using loop::StmtKind;

namespace {

constexpr size_t kLongestExpression = 88;  // characters; what is longer gets a name

constexpr const char* kReserved[] = {
    "auto",   "break",    "case",   "char",   "const",    "continue", "default", "do",
    "double", "else",     "enum",   "extern", "float",    "for",      "goto",    "if",
    "inline", "int",      "long",   "main",   "register", "restrict", "return",  "short",
    "signed", "sizeof",   "static", "struct", "switch",   "typedef",  "union",   "unsigned",
    "void",   "volatile", "while",  "lane",   "scratch"};

// Index vectors without memory are printed where they are used: ramps keep accesses contiguous.
bool is_index_form(const loop::Expr& e) {
  switch (e->kind) {
    case ExprKind::kConst:
    case ExprKind::kVar:
    case ExprKind::kSymbol:
      return true;
    case ExprKind::kRamp:
    case ExprKind::kBroadcast:
      return is_index_form(e->args[0]);
    case ExprKind::kBinary:
      return (e->binary == BinaryOp::k_add || e->binary == BinaryOp::k_sub || e->binary == BinaryOp::k_mul) &&
             is_index_form(e->args[0]) && is_index_form(e->args[1]);
    default:
      return false;
  }
}

}  // namespace

KernelPrinter::KernelPrinter(const loop::Kernel& kernel, ElementaryFunctions& functions, const Target& target)
    : CLikePrinter(kernel, TextLanguage::kC, kLongestExpression, ""),
      functions_(functions),
      has_few_registers_(target.registers_are_few()),
      has_dot_pairs_(target.has_dot_pairs),
      has_vectors_(target.arch == QNL_ARCH_ARM && target.lane_sums != 0),
      f32_fused_(target.has_f32 && target.has_fma),
      f64_fused_(target.has_f64 && target.has_fma) {
  for (const char* word : kReserved) taken_.insert(word);
}

std::string KernelPrinter::declare(const std::string& wanted) {
  std::string name;
  for (char c : wanted) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  // t0, t1… and r0, r1… are the printer's own; leading underscores and digits are C's.
  bool own = name.size() > 1 && (name[0] == 't' || name[0] == 'r') &&
             std::isdigit(static_cast<unsigned char>(name[1]));
  if (name.empty() || own || name[0] == '_' || std::isdigit(static_cast<unsigned char>(name[0])))
    name.insert(0, "x_");
  return free_name(name, "_");
}

// ---- what is used

void KernelPrinter::count_vars(const loop::Expr& e) {
  if (!e || !counted_.insert(e.get()).second) return;
  if (e->kind == ExprKind::kVar) used_vars_.insert(e->var.get());
  if (e->kind == ExprKind::kSymbol) used_symbols_.insert(e->symbol);
  if (e->kind == ExprKind::kLoad) used_buffers_.insert(e->buffer.get());
  for (const loop::Expr& arg : e->args) count_vars(arg);
}

// Variables, and elements of the kernel's own buffers, that reach no result are left out: C compilers warn of
// them.
void KernelPrinter::find_used() {
  std::function<void(const loop::StmtNode&)> visit = [&](const loop::StmtNode& s) {
    for (size_t i = s.body.size(); i-- > 0;)
      if (s.body[i]) visit(*s.body[i]);
    if (s.kind == StmtKind::kPrefetch) return;
    if (s.kind == StmtKind::kLet && !used_vars_.contains(s.var.get())) return;
    if (s.kind == StmtKind::kStore && s.buffer->scope == loop::Scope::kGlobal)
      used_buffers_.insert(s.buffer.get());
    if (s.kind == StmtKind::kStore && !used_buffers_.contains(s.buffer.get())) return;
    count_vars(s.extent);
    count_vars(s.condition);
    count_vars(s.index);
    count_vars(s.value);
  };
  for (const loop::GridAxis& axis : kernel_.grid) count_vars(axis.extent);
  for (size_t known = SIZE_MAX; kernel_.body && known != counted_.size();) {
    known = counted_.size();
    visit(*kernel_.body);
  }
}

// How many expressions and statements have each variable.
void KernelPrinter::count_references() {
  std::unordered_set<const loop::ExprNode*> seen;
  std::function<void(const loop::Expr&)> count = [&](const loop::Expr& e) {
    if (!e) return;
    if (e->kind == ExprKind::kVar) ++references_[e->var.get()];
    if (!seen.insert(e.get()).second) return;
    if (e->kind == ExprKind::kDot)
      for (size_t i = 0; i < 2; ++i)
        if (e->args[i]->kind == ExprKind::kVar) ++dot_references_[e->args[i]->var.get()];
    for (const loop::Expr& arg : e->args) count(arg);
  };
  std::function<void(const loop::StmtNode&)> visit = [&](const loop::StmtNode& s) {
    for (const loop::Expr& e : {s.extent, s.condition, s.index, s.value}) count(e);
    for (const loop::Stmt& child : s.body)
      if (child) visit(*child);
  };
  if (kernel_.body) visit(*kernel_.body);
}

// ---- the function

std::string KernelPrinter::parameters(const std::vector<bool>& without_overlap) {
  std::string text;
  auto add = [&](const std::string& parameter) { text += (text.empty() ? "" : ", ") + parameter; };
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const loop::BufferNode& b = *kernel_.buffers[i];
    bool is_apart = i < without_overlap.size() && without_overlap[i];
    if (is_apart && b.access == loop::Access::kRead) constant_buffers_.insert(&b);
    add((b.access == loop::Access::kRead ? "const " : "") + c_memory_type(b.dtype) + "* " +
        (is_apart ? "restrict " : "") + (buffers_[&b] = declare(b.name)));
  }
  for (const std::string& symbol : kernel_.symbols) {
    symbols_.push_back(declare(symbol));
    add("int64_t " + symbols_.back());
  }
  return text;
}

std::string KernelPrinter::print(const CFunction& function) {
  find_used();
  count_references();
  find_vector_buffers();
  std::string list = parameters(function.without_overlap);
  own_.indent = 1;
  for (const loop::GridAxis& axis : kernel_.grid) ranges_.bound_loop(axis.var, axis.extent);
  if (kernel_.body) ranges_.bound_elements(*kernel_.body);
  for (const loop::Buffer& b : kernel_.buffers)
    if (!used_buffers_.contains(b.get())) line("(void)" + buffers_[b.get()] + ";");
  for (size_t i = 0; i < symbols_.size(); ++i)
    if (!used_symbols_.contains(static_cast<int>(i))) line("(void)" + symbols_[i] + ";");
  std::vector<loop::Stmt> nest{kernel_.body};
  // Workgroups in order, as loops of their own.
  for (size_t i = kernel_.grid.size(); i-- > 0;) {
    loop::Stmt inner = nest.back() ? nest.back() : loop::block({});
    nest.push_back(
        loop::for_loop(kernel_.grid[i].var, kernel_.grid[i].extent, loop::AxisKind::kSerial, inner));
  }
  if (nest.back()) statement(*nest.back());
  if (scratch_bytes_ != 0) list += std::string(list.empty() ? "" : ", ") + "unsigned char* scratch";
  if (list.empty()) list = "void";
  return function.linkage + "void " + function.name + "(" + list + ") {\n" + out_ + "}\n";
}

// ---- statements

// A block of its own: what it declares ends with it.
void KernelPrinter::inner(const loop::StmtNode& s) {
  uint64_t outside = array_bytes_;
  auto vectors = vector_texts_;
  ++own_.indent;
  statement(s);
  --own_.indent;
  array_bytes_ = outside;
  vector_texts_ = std::move(vectors);
}

void KernelPrinter::add_array(uint64_t bytes) {
  array_bytes_ += bytes;
  most_array_bytes_ = std::max(most_array_bytes_, array_bytes_);
}

void KernelPrinter::print_for(const loop::StmtNode& s) {
  begin_statement({s.extent});
  int64_t extent = 0;
  bool fixed = loop::as_const_int(s.extent, &extent);
  if (fixed && extent <= 0) return;
  if (fixed && extent == 1) {
    aliases_[s.var.get()] = loop::const_index(0);
    ranges_.bound(s.var, loop::Interval::of(0));
    line("{");
    inner(*s.body[0]);
    line("}");
    return;
  }
  std::string end = atom(s.extent, scalar_place());
  ranges_.bound_loop(s.var, s.extent);
  bool fits = fits_32_bits(s.extent);
  std::string name = vars_[s.var.get()] = declare(s.var->name);
  line("for (" + std::string(fits ? "int32_t " : "int64_t ") + name + " = 0; " + name + " < " + end + "; ++" +
       name + ") {");
  inner(*s.body[0]);
  line("}");
}

void KernelPrinter::print_if(const loop::StmtNode& s) {
  begin_statement({s.condition});
  int64_t fixed = 0;
  if (loop::as_const_int(s.condition, &fixed)) {
    const loop::Stmt taken = fixed != 0 ? s.body[0] : s.body.size() > 1 ? s.body[1] : nullptr;
    if (!taken) return;
    line("{");
    inner(*taken);
    line("}");
    return;
  }
  line(if_text(scalar(s.condition)) + " {");
  inner(*s.body[0]);
  if (s.body.size() > 1 && s.body[1]) {
    line("} else {");
    inner(*s.body[1]);
  }
  line("}");
}

void KernelPrinter::print_let(const loop::StmtNode& s) {
  const loop::Expr& x = s.value;
  if (!used_vars_.contains(s.var.get())) return;
  values_[s.var.get()] = x;
  bool is_index_vector = x->type.lanes > 1 && x->type.dtype == DType::kI64 && is_index_form(x);
  // The lower bound of a saturation, which is printed as one operation.
  bool is_bound = x->type == loop::Type{DType::kI32, 1} && x->kind == ExprKind::kBinary &&
                  x->binary == BinaryOp::k_max && references_[s.var.get()] == 1 &&
                  x->args[0]->kind == ExprKind::kVar && x->args[1]->kind == ExprKind::kConst;
  if (x->kind == ExprKind::kConst || is_index_vector || is_bound) {
    aliases_[s.var.get()] = x;
    ranges_.bound(s.var, ranges_(x));
    return;
  }
  begin_statement({x});
  if (let_bytes(s)) return;
  ranges_.bound(s.var, ranges_(x));
  if (x->type.lanes == 1) {
    std::string text = scalar(x), type = value_type(x);
    line("const " + type + " " + (vars_[s.var.get()] = declare(s.var->name)) + " = " + text + ";");
    return;
  }
  if (!let_vector(s)) vars_[s.var.get()] = materialize(x, s.var->name);
}

void KernelPrinter::print_alloc(const loop::BufferNode& b) {
  if (!used_buffers_.contains(&b)) return;
  bool narrow = b.dtype == DType::kI64 && ranges_.element(b).within(INT32_MIN, INT32_MAX);
  std::string name = buffers_[&b] = declare(b.name), type = narrow ? "int32_t" : c_memory_type(b.dtype);
  if (vector_buffers_.contains(&b)) {
    add_array(static_cast<uint64_t>(byte_size(b.dtype, b.size)));
    line(vector_type({b.dtype, 4}) + " " + name + "[" + std::to_string(b.size / 4) + "];");
    return;
  }
  if (!lives_in_scratch(b)) {
    int64_t count = std::max<int64_t>(b.size, 1);
    add_array(static_cast<uint64_t>(count * (narrow ? 4 : element_size(b.dtype))));
    line(type + " " + name + "[" + std::to_string(count) + "];");
    return;
  }
  line(type + "* const " + name + " = (" + type + "*)(void*)(scratch + " + std::to_string(scratch_bytes_) +
       ");");
  scratch_bytes_ += (static_cast<uint64_t>(byte_size(b.dtype, b.size)) + 63) / 64 * 64;
}

// ---- vectors

bool KernelPrinter::touches_registers(const loop::Expr& e) {
  return contains(e, [](const loop::ExprNode& x) {
    return x.kind == ExprKind::kLoad && x.buffer->scope == loop::Scope::kRegister;
  });
}

// `body` writes into the place's sink what one lane does; here it becomes a loop, or the lanes one by one.
void KernelPrinter::each_lane(int lanes, bool one_by_one, const std::function<void(const Place&)>& body) {
  std::string text;
  Sink sink{&text, own_.indent + (one_by_one ? 0 : 1), {}};
  if (one_by_one) {
    for (int i = 0; i < lanes; ++i) body({std::to_string(i), i, &sink});
    out_ += text;
    return;
  }
  body({"lane", -1, &sink});
  line("for (int32_t lane = 0; lane < " + std::to_string(lanes) + "; ++lane) {");
  out_ += text;
  line("}");
}

// All lanes of a vector as an array.
std::string KernelPrinter::materialize(const loop::Expr& e, const std::string& prefix) {
  bool own = prefix == "r";
  std::string name = own ? "r" + std::to_string(next_name_++) : declare(prefix);
  std::string type = e->type.dtype == DType::kBool ? "uint8_t" : value_type(e);
  const loop::Expr* mask = mask_ && (*mask_)->type.lanes == e->type.lanes ? mask_ : nullptr;
  std::string declaration =
      margin(own_.indent) + type + " " + name + "[" + std::to_string(e->type.lanes) + "];\n";
  add_array(static_cast<uint64_t>(e->type.lanes * (fits_32_bits(e) ? 4 : element_size(e->type.dtype))));
  size_t begin = out_.size();
  each_lane(e->type.lanes, touches_registers(e), [&](const Place& at) {
    std::string inner = margin(at.sink->indent), element = inner + name + "[" + at.lane + "] = ";
    if (mask) {  // loads of lanes that are off must not be done
      std::string on = value(*mask, at), text;
      Sink nested{&text, at.sink->indent + 1, at.sink->names};
      std::string x = value(e, {at.lane, at.number, &nested});
      *at.sink->out += inner + if_text(on) + " {\n" + text + "  " + element + x + ";\n" + inner +
                       "} else {\n  " + element + "0;\n" + inner + "}\n";
      return;
    }
    std::string x = value(e, at);
    if (e->type.dtype == DType::kBool) x = "(uint8_t)" + x;
    *at.sink->out += element + x + ";\n";
  });
  out_.insert(begin, declaration);
  return name;
}

// Whether a lane reads what another lane of the store may write.
bool KernelPrinter::reads_other_elements(const loop::Expr& e, const loop::StmtNode& s) {
  std::string index = loop::to_string(s.index);
  return contains(e, [&](const loop::ExprNode& x) {
    return x.kind == ExprKind::kLoad && x.buffer == s.buffer && x.type.lanes > 1 && x.args[0] != s.index &&
           loop::to_string(x.args[0]) != index;
  });
}

// The value is computed under the predicate, so that its loads need no guard of their own.
void KernelPrinter::print_store(const loop::StmtNode& s) {
  if (!used_buffers_.contains(s.buffer.get())) return;
  begin_statement({s.condition, s.index, s.value});
  int lanes = s.value->type.lanes;
  loop::Expr uniform, mask;
  if (s.condition) {
    int64_t fixed = 0;
    if (loop::as_const_int(s.condition, &fixed)) {
      if (fixed == 0) return;
    } else if (s.condition->type.lanes == 1) {
      uniform = s.condition;
    } else if (s.condition->kind == ExprKind::kBroadcast) {
      uniform = s.condition->args[0];
    } else {
      mask = s.condition;
    }
  }
  uint64_t outside = array_bytes_;
  if (uniform) open(if_text(scalar(uniform)));
  if (lanes == 1) {
    std::string x = scalar(s.value), index = scalar(s.index);
    if (s.buffer->dtype == DType::kBool) x = "(uint8_t)" + x;
    line(buffer_name(*s.buffer) + "[" + index + "] = " + x + ";");
  } else if (mask || !store_vector(s)) {
    store_lanes(s, mask);
  }
  if (!uniform) return;
  array_bytes_ = outside;
  close();
}

// In lane order, so that of lanes with the same address the last one stays.
void KernelPrinter::store_lanes(const loop::StmtNode& s, const loop::Expr& mask) {
  bool is_bool = s.buffer->dtype == DType::kBool;
  bool one_by_one = s.buffer->scope == loop::Scope::kRegister || touches_registers(s.value);
  mask_ = mask ? &mask : nullptr;
  // Where lanes read what others write, all values are there before the first is stored.
  std::string values, masks, indices;
  if (mask && reads_other_elements(mask, s)) {
    mask_ = nullptr;
    masks = materialize(mask, "r");
    mask_ = &mask;
  }
  if (reads_other_elements(s.value, s)) values = materialize(s.value, "r");
  if (reads_other_elements(s.index, s)) indices = materialize(s.index, "r");
  each_lane(s.value->type.lanes, one_by_one, [&](const Place& at) {
    auto element = [&](const Place& place) {
      std::string x = values.empty() ? value(s.value, place) : values + "[" + at.lane + "]";
      std::string index = indices.empty() ? value(s.index, place) : indices + "[" + at.lane + "]";
      if (is_bool) x = "(uint8_t)" + x;
      return margin(place.sink->indent) + buffer_name(*s.buffer) + "[" + index + "] = " + x + ";\n";
    };
    if (!mask) {
      std::string text = element(at);
      *at.sink->out += text;
      return;
    }
    std::string on = masks.empty() ? value(mask, at) : masks + "[" + at.lane + "]", text;
    Sink nested{&text, at.sink->indent + 1, at.sink->names};
    std::string last = element({at.lane, at.number, &nested}), inner = margin(at.sink->indent);
    *at.sink->out += inner + if_text(on) + " {\n" + text + last + inner + "}\n";
  });
  mask_ = nullptr;
}

}  // namespace quernel::codegen
