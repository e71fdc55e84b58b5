// The shader around a kernel: its interface, its loops and statements, and barriers.
#include "codegen/spirv/shader_printer.h"

#include <algorithm>
#include <cctype>
#include <functional>

#include "codegen/spirv/glsl_prelude.h"
#include "loop/evaluate_scalar.h"
#include "loop/print.h"
#include "schemas/kernel_abi.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;
using loop::StmtKind;

namespace {

// An element of a storage buffer.
std::string memory_type(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return "int8_t";
    case DType::kI16:
      return "int16_t";
    case DType::kF16:
    case DType::kBF16:
    case DType::kU16:
      return "uint16_t";
    case DType::kF32:
    case DType::kF64:
    case DType::kI32:
    case DType::kU32:
    case DType::kI64:
    case DType::kU64:
      return glsl_type(dtype);
    default:
      return "uint8_t";
  }
}

// Shared memory holds values as they are computed with.
int64_t shared_element_bytes(DType dtype) { return bit_width(dtype) == 64 ? 8 : 4; }

}  // namespace

ShaderPrinter::ShaderPrinter(const loop::Kernel& kernel, const Target& target, NarrowBuffers narrow)
    : CLikePrinter(kernel, TextLanguage::kGlsl, kLongestExpression, kLane),
      target_(target),
      functions_(target, TextLanguage::kGlsl),
      distribution_(distribute(kernel)),
      narrow_(std::move(narrow)) {
  for (size_t i = 0; i < kGlslReservedCount; ++i) taken_.insert(kGlslReserved[i]);
  if (!kernel.body) return;
  find_matrices(*kernel.body);
  find_settled(*kernel.body);
  find_neighbours(*kernel.body);
}

std::string ShaderPrinter::declare(const std::string& wanted) {
  std::string name;
  for (char c : wanted) {
    char next = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (next != '_' || (!name.empty() && name.back() != '_')) name += next;  // two in a row are reserved
  }
  // t0, t1… are the printer's own.
  bool own = name.size() > 1 && name[0] == 't' && std::isdigit(static_cast<unsigned char>(name[1]));
  if (name.empty() || own || std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "x");
  return free_name(name, name.back() == '_' ? "" : "_");
}

void ShaderPrinter::refuse(const std::string& what) {
  errors_.push_back(unsupported("kernel '" + kernel_.name + "' as a shader: " + what));
}

// ---- the module

// What kernel_abi.h says of bindings and parameters.
std::string ShaderPrinter::interface() {
  std::string text;
  size_t words = 1 + kernel_.buffers.size() + 2 * kernel_.symbols.size();
  if (qnl_spirv_uses_push(static_cast<uint32_t>(kernel_.buffers.size()),
                          static_cast<uint32_t>(kernel_.symbols.size()))) {
    text += "layout(push_constant) uniform Parameters { uint words[" + std::to_string(words) +
            "]; } parameters;\n#define PARAMETER(i) parameters.words[i]\n";
  } else {
    text += "layout(set = 0, binding = 1) uniform Parameters { uvec4 words[" +
            std::to_string((words + 3) / 4) +
            "]; } parameters;\n#define PARAMETER(i) parameters.words[(i) / 4][(i) % 4]\n";
  }
  std::set<std::string> views;
  std::string bindings;
  for (const loop::Buffer& b : kernel_.buffers) {
    bool exchanged = distribution_.exchanged.contains(b.get());
    std::string type = memory_type(b->dtype), view = (exchanged ? "coherent_" : "view_") + type;
    if (views.insert(view).second)
      text += "layout(set = 0, binding = 0) " +
              std::string(!exchanged    ? ""
                          : multiplied_ ? "workgroupcoherent "
                                        : "coherent ") +
              "buffer Of_" + view + " { " + type + " at[]; } " + view + "[" +
              std::to_string(QNL_SPIRV_WINDOWS) + "];\n";
    std::string number = std::to_string(b->binding), name = declare(b->name);
    buffers_[b.get()] = name;
    bindings += "layout(constant_id = " + number + ") const uint window_" + number + " = 0u;\n";
    if (may_be_split(*b)) {
      bindings += split_access(*b, view);
      bindings += "#define " + name + "(i) load_" + number + "(first_" + number + " + uint(i))\n";
      bindings +=
          "#define " + name + "_store(i, x) store_" + number + "(first_" + number + " + uint(i), x)\n";
    } else {
      bindings +=
          "#define " + name + "(i) " + view + "[window_" + number + "].at[first_" + number + " + uint(i)]\n";
    }
  }
  return text + bindings;
}

// Every device has storage buffers of 128 MiB; bindings that are larger, or may be where only a run tells
// their size, may lie in several windows.
bool ShaderPrinter::may_be_split(const loop::BufferNode& b) {
  constexpr int64_t kLeastMaxRange = int64_t{128} << 20;
  return b.scope == loop::Scope::kGlobal &&
         b.size > kLeastMaxRange / static_cast<int64_t>(element_size(b.dtype));
}

// Functions that find an element's window; drivers fold them to one access where the constant is 0.
std::string ShaderPrinter::split_access(const loop::BufferNode& b, const std::string& view) const {
  std::string number = std::to_string(b.binding), memory = memory_type(b.dtype);
  std::string type = b.dtype == DType::kBool ? "uint" : glsl_type(b.dtype);
  std::string constant = "split_" + number, elements = "elements_" + number;
  auto each_window = [&](auto access) {
    std::string text;
    for (uint32_t w = 0; w < QNL_SPIRV_WINDOWS; ++w) {
      std::string next = std::to_string(w), end = std::to_string(w + 1);
      std::string first = w == 0 ? "i" : "i - " + next + "u * " + elements;
      std::string window = "window_" + number;
      if (w > 0) window = "(" + window + " + " + next + "u) % " + std::to_string(QNL_SPIRV_WINDOWS) + "u";
      text += w == 0                      ? "  if (" + elements + " == 0u || i < " + elements + ") "
              : w + 1 < QNL_SPIRV_WINDOWS ? "  else if (i < " + end + "u * " + elements + ") "
                                          : "  else ";
      text += access(view + "[" + window + "].at[" + first + "]") + ";\n";
    }
    return text;
  };
  std::string text = "layout(constant_id = " + std::to_string(QNL_SPIRV_SPLIT + b.binding) + ") const uint " +
                     constant + " = 0u;\nconst uint " + elements + " = " + constant + " / " +
                     std::to_string(element_size(b.dtype)) + "u;\n";
  text += type + " load_" + number + "(uint i) {\n  " + type + " x;\n" +
          each_window([&](const std::string& place) { return "x = " + type + "(" + place + ")"; }) +
          "  return x;\n}\n";
  if (b.access == loop::Access::kRead) return text;
  return text + "void store_" + number + "(uint i, " + type + " x) {\n" +
         each_window([&](const std::string& place) { return place + " = " + memory + "(x)"; }) + "}\n";
}

Expected<Shader> ShaderPrinter::print() {
  std::string module = interface();
  own_.indent = 1;
  line("int lane = int(gl_LocalInvocationIndex);");
  for (const loop::Buffer& b : kernel_.buffers) {
    std::string number = std::to_string(b->binding);
    line("uint first_" + number + " = PARAMETER(" + std::to_string(1 + b->binding) + ") / " +
         std::to_string(element_size(b->dtype)) + "u;");
  }
  line("uint workgroup = gl_WorkGroupID.x + gl_WorkGroupID.y * gl_NumWorkGroups.x;");
  open("if (workgroup < PARAMETER(0))");
  if (!kernel_.grid.empty()) line("int grid = int(workgroup);");
  for (size_t i = kernel_.grid.size(); i-- > 0;) {
    const loop::GridAxis& axis = kernel_.grid[i];
    begin_statement();
    // Their product is the number of workgroups, an int.
    ranges_.bound(axis.var, {0, INT32_MAX - 1});
    int64_t extent = 0;
    if (loop::as_const_int(axis.extent, &extent))
      ranges_.bound(axis.var, {0, std::max<int64_t>(extent - 1, 0)});
    std::string name = vars_[axis.var.get()] = declare(axis.var->name);
    narrow_vars_[axis.var.get()] = true;
    std::string count = low_word(axis.extent, scalar_place());
    line("int " + name + " = grid" + (i == 0 ? "" : " % " + count) + ";");
    if (i != 0) line("grid /= " + count + ";");
  }
  if (multiplied_) {
    line("const uint qnl_first_row = gl_SubgroupID * qnl_tiles % qnl_tiles_down;");
    line("const uint qnl_first_column = gl_SubgroupID * qnl_tiles / qnl_tiles_down;");
  }
  if (kernel_.body) statement(*kernel_.body);
  close();
  if (!errors_.empty()) return errors_;

  QUERNEL_TRY(std::string operations, functions_.print());
  Shader shader;
  shader.invocations = distribution_.invocations;
  shader.shared_bytes = shared_bytes_;
  std::string users = operations + reductions_ + out_;
  bool converts_f16 =
      multiplied_ == DType::kF16 || adds_halves_ || operations.find("packFloat2x16(") != std::string::npos;
  shader.text = std::string(kGlslHead) + (uses_subgroups_ || multiplied_ ? kGlslSubgroups : "") +
                (converts_f16 ? kGlslFloat16 : "") + matrix_extensions() +
                "layout(local_size_x = " + std::to_string(shader.invocations) + ") in;\n" + module +
                matrix_declarations() + views_ + shared_ + glsl_prelude_for(users) + operations +
                reductions_ + "void main() {\n" + out_ + "}\n";
  return shader;
}

ShaderPrinter::NarrowBuffers ShaderPrinter::narrow_buffers() const {
  NarrowBuffers result;
  for (const auto& [buffer, placement] : distribution_.placements)
    if (buffer->dtype == DType::kI64 && !wide_.contains(buffer)) result.insert(buffer);
  return result;
}

Expected<Shader> print_shader(const loop::Kernel& kernel, const Target& target) {
  ShaderPrinter wide(kernel, target);
  QUERNEL_TRY(Shader shader, wide.print());
  ShaderPrinter::NarrowBuffers narrow = wide.narrow_buffers();
  if (narrow.empty()) return shader;
  return ShaderPrinter(kernel, target, std::move(narrow)).print();
}

// ---- barriers

namespace {
// The lanes of an index that depends on nothing else; none where it is not so.
std::vector<int64_t> fixed_lanes(const loop::Expr& e) {
  auto lanes = static_cast<size_t>(e->type.lanes);
  std::vector<int64_t> result(lanes);
  switch (e->kind) {
    case ExprKind::kConst:
      std::fill(result.begin(), result.end(), loop::bits_to_int(e->type.dtype, e->bits));
      return result;
    case ExprKind::kRamp:
    case ExprKind::kBroadcast: {
      std::vector<int64_t> base = fixed_lanes(e->args[0]);
      if (base.empty()) return {};
      int64_t stride = e->kind == ExprKind::kRamp ? e->stride : 0;
      for (size_t i = 0; i < lanes; ++i) result[i] = base[0] + static_cast<int64_t>(i) * stride;
      return result;
    }
    case ExprKind::kBinary: {
      if (e->type.dtype != DType::kI64) return {};
      std::vector<int64_t> a = fixed_lanes(e->args[0]), b = fixed_lanes(e->args[1]);
      if (a.empty() || b.empty()) return {};
      for (size_t i = 0; i < lanes; ++i)
        result[i] = static_cast<int64_t>(loop::evaluate_binary(
            e->binary, DType::kI64, static_cast<uint64_t>(a[i]), static_cast<uint64_t>(b[i])));
      return result;
    }
    default:
      return {};
  }
}

bool meet(const auto& a, const auto& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& x) { return b.contains(x); });
}
}  // namespace

void ShaderPrinter::Exchange::join(const Exchange& other) {
  for (const loop::BufferNode* b : other.written) {
    auto known = other.places.find(b);
    if (known == other.places.end() || (written.contains(b) && !places.contains(b)))
      places.erase(b);
    else
      places[b].insert(known->second.begin(), known->second.end());
  }
  read.insert(other.read.begin(), other.read.end());
  written.insert(other.written.begin(), other.written.end());
}

void ShaderPrinter::read_exchanged(const loop::Expr& e, Exchange& result,
                                   std::unordered_set<const loop::ExprNode*>& seen) const {
  if (!e || !seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::kLoad && distribution_.exchanged.contains(e->buffer.get()))
    result.read.insert(e->buffer.get());
  for (const loop::Expr& arg : e->args) read_exchanged(arg, result, seen);
}

ShaderPrinter::Exchange ShaderPrinter::accesses(const loop::StmtNode& s) const {
  Exchange result;
  std::unordered_set<const loop::ExprNode*> seen;
  for (const loop::Expr* e : {&s.extent, &s.condition, &s.index, &s.value}) read_exchanged(*e, result, seen);
  if (s.kind == StmtKind::kStore && distribution_.exchanged.contains(s.buffer.get())) {
    if (std::vector<int64_t> places = fixed_lanes(s.index); !places.empty())
      result.places[s.buffer.get()].insert(places.begin(), places.end());
    result.written.insert(s.buffer.get());
  }
  if (s.matrices)
    for (const loop::MatrixPlace* place : {&s.matrices->a, &s.matrices->b}) {
      read_exchanged(place->index, result, seen);
      if (distribution_.exchanged.contains(place->buffer.get()))
        (s.kind == StmtKind::kStoreMatrix ? result.written : result.read).insert(place->buffer.get());
    }
  for (const loop::Stmt& child : s.body)
    if (child) result.join(accesses(*child));
  return result;
}

bool ShaderPrinter::Exchange::conflicts_with(const Exchange& later) const {
  if (meet(later.read, written) || meet(later.written, read)) return true;
  return std::any_of(written.begin(), written.end(), [&](const loop::BufferNode* b) {
    if (!later.written.contains(b)) return false;
    auto before = places.find(b), after = later.places.find(b);
    return before == places.end() || after == later.places.end() || meet(before->second, after->second);
  });
}

void ShaderPrinter::Exchange::forget_own() {
  auto is_own = [](const loop::BufferNode* b) { return b->scope != loop::Scope::kGlobal; };
  std::erase_if(read, is_own);
  std::erase_if(written, is_own);
  std::erase_if(places, [&](const auto& place) { return is_own(place.first); });
}

void ShaderPrinter::order(const Exchange& now) {
  if (since_barrier_.conflicts_with(now)) {
    auto is_global = [](const loop::BufferNode* b) { return b->scope == loop::Scope::kGlobal; };
    bool global = std::any_of(since_barrier_.written.begin(), since_barrier_.written.end(), is_global) ||
                  std::any_of(since_barrier_.read.begin(), since_barrier_.read.end(), is_global);
    line(global ? "memoryBarrierBuffer(); barrier();" : "barrier();");
    since_barrier_ = {};
  }
  since_barrier_.join(now);
  of_statement_ = now;
}

// ---- statements

void ShaderPrinter::begin_statement(std::initializer_list<loop::Expr> roots) {
  CLikePrinter::begin_statement(roots);
  low_words_.clear();
}

namespace {
// The accesses of a statement's own expressions.
loop::StmtNode without_body(const loop::StmtNode& s) {
  loop::StmtNode head = s;
  head.body.clear();
  return head;
}
}  // namespace

void ShaderPrinter::print_for(const loop::StmtNode& s) {
  begin_statement({s.extent});
  order(accesses(without_body(s)));
  reduce_first(s.extent);
  int64_t extent = 0;
  bool fixed = loop::as_const_int(s.extent, &extent);
  if (fixed && extent <= 0) return;
  // More steps than an int counts nobody waits for.
  std::string end = low_word(s.extent, scalar_place());
  int64_t steps = std::clamp<int64_t>(ranges_(s.extent).hi, 1, INT32_MAX);
  ranges_.bound(s.var, {0, steps - 1});
  std::string name = vars_[s.var.get()] = declare(s.var->name);
  narrow_vars_[s.var.get()] = true;
  Exchange step = accesses(*s.body[0]), before = since_barrier_;
  // Where steps need no barrier between them, one before them all is enough.
  if (!step.conflicts_with(step)) order(step);
  since_barrier_.join(step);  // of the step before
  open("for (int " + name + " = 0; " + name + " < " + end + "; ++" + name + ")");
  statement(*s.body[0]);
  close();
  since_barrier_.join(step);
  if (ranges_(s.extent).lo < 1) since_barrier_.join(before);  // no step, no barrier
}

void ShaderPrinter::print_if(const loop::StmtNode& s) {
  begin_statement({s.condition});
  order(accesses(without_body(s)));
  if (s.condition->type.lanes > 1) return refuse("a branch that depends on a vector");
  reduce_first(s.condition);
  open("if (" + lane_value(s.condition) + ")");
  Exchange before = since_barrier_;
  statement(*s.body[0]);
  if (s.body.size() > 1 && s.body[1]) {
    forget_loaded();
    --own_.indent;
    open("} else");
    Exchange after = since_barrier_;
    since_barrier_ = before;
    statement(*s.body[1]);
    since_barrier_.join(after);
  } else {
    since_barrier_.join(before);
  }
  close();
}

void ShaderPrinter::print_let(const loop::StmtNode& s) {
  begin_statement({s.value});
  order(accesses(s));
  reduce_first(s.value);
  ranges_.bound(s.var, ranges_(s.value));
  std::string text = lane_value(s.value), type = value_type(s.value);
  narrow_vars_[s.var.get()] = type == "int";
  line((is_float(s.value->type.dtype) && type != "uint" ? "precise " : "") + type + " " +
       (vars_[s.var.get()] = declare(s.var->name)) + " = " + text + ";");
}

void ShaderPrinter::print_alloc(const loop::BufferNode& b) {
  std::string name = buffers_[&b] = declare(b.name), type = element_type(b);
  if (b.scope == loop::Scope::kMatrix) return print_matrix_sums(name);
  int64_t elements = std::max<int64_t>(b.size, 1);
  Placement placement = distribution_.placements.at(&b);
  if (placement == Placement::kDistributed) {
    int64_t lanes = distribution_.lanes.at(&b);
    elements = (elements + lanes - 1) / lanes;
  }
  std::string array = type + " " + name + "[" + std::to_string(elements) + "];";
  if (placement == Placement::kShared) {
    shared_ += "shared " + array + "\n";
    shared_bytes_ +=
        elements * (narrow_shared_.contains(&b) ? element_size(b.dtype) : shared_element_bytes(b.dtype));
    return;
  }
  line((type == "float" || type == "double" ? "precise " : "") + array);
}

// The value is computed under the store's predicate, so that its loads need no guard of their own.
void ShaderPrinter::print_store(const loop::StmtNode& s) {
  begin_statement({s.condition, s.index, s.value});
  order(accesses(s));
  const loop::BufferNode& b = *s.buffer;
  int lanes = s.value->type.lanes, depth = own_.indent;
  bool own = b.scope != loop::Scope::kGlobal && distribution_.placements.at(&b) != Placement::kShared;
  loop::Expr condition = s.condition;
  if (condition && condition->kind == ExprKind::kBroadcast) condition = condition->args[0];
  int64_t fixed = 0;
  if (condition && loop::as_const_int(condition, &fixed)) {
    if (fixed == 0) return;
    condition = nullptr;
  }
  reduce_first(condition);
  bool uniform = condition && condition->type.lanes == 1;
  Exchange before = since_barrier_;
  if (uniform) open("if (" + lane_value(condition) + ")");
  reduce_first(s.index);
  reduce_first(s.value);
  if (uniform) since_barrier_.join(before);
  std::string on;
  if (lanes > 1 && lanes < distribution_.invocations) on = "lane < " + std::to_string(lanes);
  if (lanes == 1 && distribution_.invocations > 1 && !own) on = "lane == 0";
  if (condition && !uniform)
    on = on.empty() ? lane_value(condition) : "(" + on + ") && " + lane_value(condition);
  std::string type = glsl_type(b.dtype), kept;
  bool is_real = is_wide_float(b.dtype);
  if (lanes > 1 && distribution_.exchanged.contains(&b) && reads_other_elements(s)) {
    // All lanes read before the first one writes.
    kept = "t" + std::to_string(next_name_++);
    line((is_real ? "precise " : "") + type + " " + kept + ";");
    if (!on.empty()) on = define("bool", on, own_);
    if (!on.empty()) open("if (" + on + ")");
    line(kept + " = " + lane_value(s.value) + ";");
    if (!on.empty()) close();
    begin_statement();
    line("memoryBarrierBuffer(); barrier();");
  }
  if (!on.empty()) open("if (" + on + ")");
  std::string x = kept.empty() ? lane_value(s.value) : kept;
  if (b.dtype == DType::kI64 && !fits_32_bits(s.value)) wide_.insert(&b);
  if (is_real && !own && kept.empty()) x = define("precise " + type, x, own_);
  if (may_be_split(b)) {
    if (b.dtype == DType::kBool) x = "uint(" + x + ")";
    line(buffers_.at(&b) + "_store(" + low_word(s.index, scalar_place()) + ", " + x + ");");
    while (own_.indent > depth) close();
    return;
  }
  std::string place = element(b, s.index, scalar_place());
  if (b.scope == loop::Scope::kGlobal) {
    if (b.dtype == DType::kBool) x = "uint(" + x + ")";
    if (memory_type(b.dtype) != type) x = memory_type(b.dtype) + "(" + x + ")";
  }
  if (narrow_shared_.contains(&b))
    x = b.dtype == DType::kF16 ? "unpackFloat2x16(" + x + ").x" : matrix_element() + "(" + x + ")";
  line(place + " = " + x + ";");
  if (b.scope != loop::Scope::kGlobal && b.dtype == DType::kI64) loaded_.clear();  // indices may change
  while (own_.indent > depth) close();
}

// Whether a lane reads what another lane of the store may write.
bool ShaderPrinter::reads_other_elements(const loop::StmtNode& s) const {
  std::string index = loop::to_string(s.index);
  auto reads_another = [&](const loop::ExprNode& e) {
    return e.kind == ExprKind::kLoad && e.buffer == s.buffer && loop::to_string(e.args[0]) != index;
  };
  return contains(s.value, reads_another) || contains(s.condition, reads_another) ||
         contains(s.index, reads_another);
}

}  // namespace quernel::codegen
