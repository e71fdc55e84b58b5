#include "lower/evaluate.h"

#include <algorithm>

#include "graph/nonzero_dim.h"
#include "loop/evaluate_scalar.h"
#include "schedule/plans/operand_indices.h"
#include "schedule/storage.h"

namespace quernel::lower {

using loop::Expr;

Expr LaunchSymbols::operator()(const Dim& dim) {
  if (dim.is_const()) return loop::const_index(dim.value());
  auto it = std::find(dims.begin(), dims.end(), dim);
  if (it == dims.end()) it = dims.insert(it, dim);
  return loop::symbol_ref(static_cast<int>(it - dims.begin()));
}

namespace {

// Whether the binding shares bytes of the workspace with another one of the item, other than in place.
bool overlaps_another(const schedule::Schedule& s, const schedule::Item& item, const schedule::Binding& a) {
  const schedule::Buffer& x = s.buffers[a.buffer];
  return std::any_of(item.bindings.begin(), item.bindings.end(), [&](const schedule::Binding& b) {
    const schedule::Buffer& y = s.buffers[b.buffer];
    if (a.write == b.write || x.kind != schedule::BufferKind::kWorkspace || y.kind != x.kind ||
        x.region != y.region || schedule::root_buffer(s, a.buffer) == schedule::root_buffer(s, b.buffer))
      return false;
    const Dim from = x.offset + a.offset, other = y.offset + b.offset;
    return from.is_const() && other.is_const() && a.bytes.is_const() && b.bytes.is_const() &&
           from.value() < other.value() + b.bytes.value() && other.value() < from.value() + a.bytes.value();
  });
}

// Whether the binding begins at a multiple of 16 bytes: the caller's memory need not, and constants of firmware do not.
bool is_aligned(const schedule::Schedule& s, const schedule::Binding& binding, const Target& target) {
  constexpr int64_t kAlignment = 16;
  const schedule::Buffer& memory = s.buffers[static_cast<size_t>(schedule::root_buffer(s, binding.buffer))];
  const bool is_ours = memory.kind == schedule::BufferKind::kConstant ||
                       (memory.kind == schedule::BufferKind::kWorkspace && memory.slot < 0);
  return target.lanes_are_invocations() && is_ours && floormod(binding.offset, kAlignment) == Dim(0);
}

// The number of bits of a word if the value is a constant by whose elements words are shifted, each by fewer bits;
// else 0.
int64_t shifts_below(const Graph& graph, ValueId v) {
  constexpr int64_t kWord = 32, kMost = 1 << 16;
  const Tensor* counts = v == kNoValue ? nullptr : graph.constant(v);
  if (!counts || !is_integer(counts->dtype) || is_packed(counts->dtype) || counts->count() > kMost) return 0;
  for (int64_t i = 0; i < counts->count(); ++i)
    if (int64_t count = element_as_i64(*counts, i); count < 0 || count >= kWord) return 0;
  auto shifts = [&](const Node& node) {
    if (node.op != OpKind::k_shl && node.op != OpKind::k_shr) return false;
    ValueId by = node.inputs[1];
    for (const Node* n = graph.def(by); n && (is_movement(n->op) || n->op == OpKind::k_cast);
         n = graph.def(by))
      by = n->inputs[0];
    return by == v;
  };
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), shifts) ? kWord : 0;
}

}  // namespace

KernelBuffers make_buffers(const schedule::Schedule& s, const schedule::Item& item, const Target& target) {
  KernelBuffers result;
  for (size_t i = 0; i < item.bindings.size(); ++i) {
    const schedule::Binding& binding = item.bindings[i];
    auto buffer = std::make_shared<loop::BufferNode>();
    buffer->name = (binding.write ? "out" : "in") + std::to_string(i);
    buffer->dtype =
        binding.value == kNoValue ? s.buffers[binding.buffer].dtype : s.graph.dtype(binding.value);
    buffer->size =
        binding.bytes.is_const() ? binding.bytes.value() / element_size(buffer->dtype) : loop::kUnknownSize;
    if (is_packed(buffer->dtype)) buffer->dtype = DType::kU8;
    buffer->binding = static_cast<int>(i);
    buffer->access = binding.write ? loop::Access::kWrite : loop::Access::kRead;
    buffer->overlaps = overlaps_another(s, item, binding);
    buffer->aligned = is_aligned(s, binding, target);
    buffer->below = shifts_below(s.graph, binding.value);
    if (binding.value == kNoValue) {
      if (binding.write) buffer->access = loop::Access::kReadWrite;
      if (binding.write)
        result.scratch = buffer;
      else
        result.packed.push_back(buffer);
    } else {
      (binding.write ? result.writes : result.reads)[binding.value] = buffer;
    }
    result.buffers.push_back(buffer);
  }
  return result;
}

Evaluator::Evaluator(const schedule::Schedule& schedule, const schedule::Group& group,
                     const KernelBuffers& buffers, LaunchSymbols& symbols)
    : schedule_(schedule),
      graph_(schedule.graph),
      buffers_(buffers),
      symbols_(symbols),
      computed_(schedule.graph.values.size(), 0) {
  for (int n : group.nodes) computed_[graph_.nodes[n].output] = 1;
}

namespace {
thread_local int next_name = 0;
}
void restart_names() { next_name = 0; }
DryNames::DryNames() : first_(next_name) {}
DryNames::~DryNames() { next_name = first_; }
std::string fresh_name(const std::string& base) { return base + "_" + std::to_string(next_name++); }
loop::Var fresh_var(const std::string& name, loop::Type type) {
  auto var = std::make_shared<loop::VarNode>();
  var->name = fresh_name(name);
  var->type = type;
  return var;
}

Expr Evaluator::name_value(std::string name, Expr value) {
  if (value->kind == loop::ExprKind::kConst || value->kind == loop::ExprKind::kVar) return value;
  loop::Var var = fresh_var(name, value->type);
  statements.push_back(loop::let(var, value));
  return loop::var_ref(var);
}

Shape Evaluator::extents() const {
  Shape result;
  for (const Axis& axis : axes) result.push_back(axis.extent);
  return result;
}

Expr Evaluator::expression(const IndexExpr& e) const {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
      return symbols_(e.value());
    case IndexExpr::Kind::kAxis:
      return axes[e.axis_index()].value;
    case IndexExpr::Kind::kAdd:
      return expression(e.lhs()) + expression(e.rhs());
    case IndexExpr::Kind::kMul:
      return expression(e.lhs()) * symbols_(e.value());
    case IndexExpr::Kind::kFloorDiv:
    case IndexExpr::Kind::kMod: {
      bool negative = !always_le(0, range_of(e.lhs(), extents()).lo);
      Expr divisor = symbols_(as_divisor(e.value(), graph_.symbols));
      if (e.kind() == IndexExpr::Kind::kMod)
        return loop::binary(negative ? BinaryOp::k_mod : BinaryOp::k_fmod, expression(e.lhs()), divisor);
      return loop::binary(negative ? BinaryOp::k_fdiv : BinaryOp::k_idiv, expression(e.lhs()), divisor);
    }
  }
  return nullptr;
}

IndexExpr Evaluator::offset_of(ValueId v, const std::vector<IndexExpr>& indices) const {
  return schedule::element_offset(schedule_, v, indices, extents());
}

Expr Evaluator::load_value(ValueId v, const std::vector<IndexExpr>& indices) {
  auto it = buffers_.reads.find(v);
  if (it == buffers_.reads.end())
    QUERNEL_UNREACHABLE("value '" + graph_.values[v].name + "' is read but not bound");
  IndexExpr offset = offset_of(v, indices);
  if (is_packed(graph_.dtype(v))) return load_packed(it->second, graph_.dtype(v), offset);
  Expr loaded = load_element(it->second, place_of(v, offset));
  return on_load ? on_load(v, offset, loaded) : loaded;
}

Expr Evaluator::place_of(ValueId v, const IndexExpr& offset) const {
  auto first = buffers_.first.find(v);
  return first == buffers_.first.end() ? expression(offset) : expression(offset) - first->second;
}

Expr Evaluator::load_element(const loop::Buffer& buffer, Expr index) {
  if (!predicate_) return name_value("x", loop::load(buffer, index));
  return name_value("x",
                    loop::load_guarded(buffer, index, predicate_, loop::const_bits({buffer->dtype, 1}, 0)));
}

namespace {
// The low half of a byte as an element.
Expr from_nibble(DType dtype, Expr byte) {
  Expr four = loop::const_int(DType::kU8, 4);
  if (dtype == DType::kU4) return loop::binary(BinaryOp::k_and, byte, loop::const_int(DType::kU8, 15));
  Expr high = loop::bitcast({DType::kI8, 1}, loop::binary(BinaryOp::k_shl, byte, four));
  return loop::binary(BinaryOp::k_shr, high, loop::const_int(DType::kI8, 4));
}
Expr to_nibble(Expr x) {
  return loop::binary(BinaryOp::k_and, loop::bitcast({DType::kU8, 1}, x), loop::const_int(DType::kU8, 15));
}
}  // namespace

DType register_dtype(DType dtype) {
  return dtype == DType::kI4 ? DType::kI8 : dtype == DType::kU4 ? DType::kU8 : dtype;
}

Expr Evaluator::load_packed(const loop::Buffer& buffer, DType dtype, const IndexExpr& offset) {
  Expr byte = load_element(buffer, expression(simplify(floordiv(offset, 2), extents())));
  Expr shift = loop::cast(DType::kU8, expression(simplify(floormod(offset, 2) * 4, extents())));
  return name_value("x", from_nibble(dtype, loop::binary(BinaryOp::k_shr, byte, shift)));
}

Expr Evaluator::packed_pair(ValueId v, const std::vector<IndexExpr>& at, const std::vector<IndexExpr>& next) {
  Expr low = packed_element(v, at);
  Expr high = loop::bitcast({DType::kU8, 1}, evaluate(v, next));
  high = loop::binary(BinaryOp::k_shl, high, loop::const_int(DType::kU8, 4));
  return name_value("pair", loop::binary(BinaryOp::k_or, low, high));
}

Expr Evaluator::packed_element(ValueId v, const std::vector<IndexExpr>& at) {
  return to_nibble(evaluate(v, at));
}

// Into packed dtypes, integers keep their low four bits, floats saturate.
Expr Evaluator::convert(Expr x, DType from, DType to) {
  if (!is_packed(to)) return loop::cast(to, x);
  if (is_float(from)) {
    if (loop::is_storage_only(from) || from == DType::kF16 || from == DType::kBF16)
      x = loop::cast(DType::kF32, x);
    DType wide = x->type.dtype;
    Expr low = loop::const_float(wide, to == DType::kI4 ? -8 : 0),
         high = loop::const_float(wide, to == DType::kI4 ? 7 : 15);
    x = loop::binary(BinaryOp::k_min, loop::binary(BinaryOp::k_max, x, low), high);
    return loop::cast(register_dtype(to), x);
  }
  return from_nibble(to, loop::cast(DType::kU8, x));
}

void Evaluator::store(ValueId v, const std::vector<IndexExpr>& indices, Expr value) {
  IndexExpr offset = offset_of(v, indices);
  statements.push_back(loop::store(buffers_.writes.at(v), place_of(v, offset), value));
}

Expr Evaluator::Local::place(const Expr& column) const {
  Expr at = each ? column : loop::const_index(0);
  return first ? first + at : at;
}

Expr Evaluator::evaluate(ValueId v, const std::vector<IndexExpr>& indices) {
  if (auto it = provided_.find(v); it != provided_.end()) return it->second;
  if (const Tensor* constant = graph_.constant(v);
      constant && constant->count() == 1 && element_size(constant->dtype) <= 8) {
    uint64_t bits = 0;
    std::memcpy(&bits, constant->bytes.data(), constant->bytes.size());
    if (is_packed(constant->dtype))
      return loop::const_int(register_dtype(constant->dtype), element_as_i64(*constant, 0));
    return loop::const_bits({constant->dtype, 1}, bits);
  }
  for (const Known& known : memo_[v])
    if (known.predicate == predicate_ && known.indices == indices) return known.value;
  if (auto it = locals.find(v); it != locals.end()) {
    const Local& local = it->second;
    Expr at = local.place(local.each ? expression(indices.back()) : loop::const_index(0));
    Expr value = name_value("x", loop::load(local.buffer, at));
    memo_[v].push_back({indices, predicate_, value});
    return value;
  }
  const Node* node = graph_.def(v);
  bool stored = !computed_[v] && schedule_.storage[v].valid();
  Expr value = !node || stored || node->op == OpKind::k_constant ? load_value(v, indices)
                                                                 : evaluate_node(*node, indices);
  memo_[v].push_back({indices, predicate_, value});
  return value;
}

Expr Evaluator::evaluate_node(const Node& node, const std::vector<IndexExpr>& indices) {
  if (node.op == OpKind::k_contiguous) return evaluate(node.inputs[0], indices);
  if (has_index_map(node)) return through_map(node, indices);
  if (node.op == OpKind::k_pad) return evaluate(node.inputs[0], padded_indices(node, indices));
  if (node.op == OpKind::k_take || node.op == OpKind::k_gather_elements || node.op == OpKind::k_gather_nd)
    return evaluate(node.inputs[0], gather_indices(node, indices));
  if (node.op == OpKind::k_bitcast) return reinterpret(node, indices);
  if (node.op == OpKind::k_dims) return dim_element(node, indices[0]);
  std::vector<Expr> args;
  for (ValueId v : node.inputs) args.push_back(evaluate(v, indices));
  if (auto op = unary_op(node.op)) return name_value("v", loop::unary(*op, args[0]));
  if (auto op = binary_op(node.op)) return name_value("v", loop::binary(*op, args[0], args[1]));
  switch (node.op) {
    case OpKind::k_where:
      return name_value("v", loop::select(args[0], args[1], args[2]));
    case OpKind::k_mulacc:
      return name_value("v", loop::mul_acc(args[0], args[1], args[2]));
    case OpKind::k_clamp:
      return name_value(
          "v", loop::binary(BinaryOp::k_min, loop::binary(BinaryOp::k_max, args[0], args[1]), args[2]));
    case OpKind::k_cast:
      return name_value("v", convert(args[0], graph_.dtype(node.inputs[0]), node.attributes.dtype));
    default:
      QUERNEL_UNREACHABLE("op " + std::string(to_string(node.op)) + " is not evaluated inside a kernel");
  }
}

Expr Evaluator::through_map(const Node& node, const std::vector<IndexExpr>& indices) {
  schedule::MappedRead inner = schedule::mapped_read(graph_, node, indices, extents());
  Expr condition;
  auto require = [&](Expr c) { condition = condition ? loop::binary(BinaryOp::k_and, condition, c) : c; };
  for (const IndexGuard& guard : inner.guards) {
    IndexRange range = range_of(guard.expr, extents());
    if (!always_le(guard.lo, range.lo))
      require(loop::binary(BinaryOp::k_ge, expression(guard.expr), symbols_(guard.lo)));
    if (!always_lt(range.hi, guard.hi))
      require(loop::binary(BinaryOp::k_lt, expression(guard.expr), symbols_(guard.hi)));
  }
  if (!condition) return evaluate(node.inputs[0], inner.indices);
  condition = name_value("ok", condition);
  Expr outside = predicate_;
  predicate_ = outside ? name_value("ok", loop::binary(BinaryOp::k_and, outside, condition)) : condition;
  Expr value = evaluate(node.inputs[0], inner.indices);
  predicate_ = outside;
  DType dtype = register_dtype(graph_.dtype(node.output));
  double fill = node.attributes.fill;
  Expr otherwise =
      is_float(dtype) ? loop::const_float(dtype, fill) : loop::const_int(dtype, static_cast<int64_t>(fill));
  return name_value("v", loop::select(condition, value, otherwise));
}

namespace {
DType unsigned_of_width(int bits) {
  switch (bits) {
    case 8:
      return DType::kU8;
    case 16:
      return DType::kU16;
    case 32:
      return DType::kU32;
    default:
      return DType::kU64;
  }
}
}  // namespace

// An element of a vector of dims: the dim, or a choice among all of them.
Expr Evaluator::dim_element(const Node& node, const IndexExpr& index) {
  const Shape& elements = node.attributes.shape;
  if (index.is_const() && index.value().is_const()) return symbols_(elements[index.value().value()]);
  Expr position = expression(index), value = symbols_(elements[0]);
  for (size_t i = 1; i < elements.size(); ++i)
    value = loop::select(loop::binary(BinaryOp::k_eq, position, loop::const_index(static_cast<int64_t>(i))),
                         symbols_(elements[i]), value);
  return name_value("v", value);
}

// Bits as another dtype; between widths the last dim is rescaled, low-order parts first.
Expr Evaluator::reinterpret(const Node& node, const std::vector<IndexExpr>& indices) {
  DType from = graph_.dtype(node.inputs[0]), to = node.attributes.dtype;
  int from_bits = bit_width(from), to_bits = bit_width(to);
  if (is_packed(from) || is_packed(to)) return reinterpret_packed(node, indices);
  if (from_bits == to_bits) return name_value("v", loop::bitcast({to, 1}, evaluate(node.inputs[0], indices)));
  DType narrow = unsigned_of_width(std::min(from_bits, to_bits)),
        wide = unsigned_of_width(std::max(from_bits, to_bits));
  std::vector<std::vector<IndexExpr>> inner = schedule::bitcast_reads(graph_, node, indices, extents());
  if (from_bits < to_bits) {
    Expr whole = loop::const_int(wide, 0);
    for (int part = 0; part < to_bits / from_bits; ++part) {
      Expr bits = loop::cast(wide, loop::bitcast({narrow, 1}, evaluate(node.inputs[0], inner[part])));
      whole = loop::binary(BinaryOp::k_or, whole,
                           loop::binary(BinaryOp::k_shl, bits, loop::const_int(wide, part * from_bits)));
    }
    return name_value("v", loop::bitcast({to, 1}, whole));
  }
  int64_t parts = from_bits / to_bits;
  Expr whole = loop::bitcast({wide, 1}, evaluate(node.inputs[0], inner[0]));
  Expr shift = loop::cast(
      wide, expression(simplify(floormod(indices.back(), parts), extents())) * loop::const_index(to_bits));
  return name_value("v",
                    loop::bitcast({to, 1}, loop::cast(narrow, loop::binary(BinaryOp::k_shr, whole, shift))));
}

// The same where one of the two is packed: the others are whole numbers of bytes.
Expr Evaluator::reinterpret_packed(const Node& node, const std::vector<IndexExpr>& indices) {
  DType from = graph_.dtype(node.inputs[0]), to = node.attributes.dtype;
  if (is_packed(from) && is_packed(to)) {
    Expr x = loop::bitcast({DType::kU8, 1}, evaluate(node.inputs[0], indices));
    return name_value("v", from_nibble(to, x));
  }
  std::vector<std::vector<IndexExpr>> inner = schedule::bitcast_reads(graph_, node, indices, extents());
  if (is_packed(from)) {
    DType bits = unsigned_of_width(bit_width(to));
    int64_t parts = bit_width(to) / 4;
    Expr whole = loop::const_int(bits, 0);
    for (int64_t part = 0; part < parts; ++part) {
      Expr nibble = loop::cast(bits, to_nibble(evaluate(node.inputs[0], inner[part])));
      whole = loop::binary(BinaryOp::k_or, whole,
                           loop::binary(BinaryOp::k_shl, nibble, loop::const_int(bits, part * 4)));
    }
    return name_value("v", to == DType::kBool ? loop::cast(to, whole) : loop::bitcast({to, 1}, whole));
  }
  DType bits = unsigned_of_width(bit_width(from));
  int64_t parts = bit_width(from) / 4;
  Expr x = evaluate(node.inputs[0], inner[0]);
  Expr whole = from == DType::kBool ? loop::cast(bits, x) : loop::bitcast({bits, 1}, x);
  Expr shift = loop::cast(bits, expression(simplify(floormod(indices.back(), parts) * 4, extents())));
  return name_value("v",
                    from_nibble(to, loop::cast(DType::kU8, loop::binary(BinaryOp::k_shr, whole, shift))));
}

// Edge and reflect padding: positions outside come from inside.
std::vector<IndexExpr> Evaluator::padded_indices(const Node& node, const std::vector<IndexExpr>& indices) {
  return schedule::padded_read(graph_, node, indices, extents(), [&](const IndexExpr& position, size_t d) {
    const Dim& extent = graph_.shape(node.inputs[0])[d];
    const Dim last = extent - 1;
    Expr p = expression(position);
    auto larger = [](Expr a, Expr b) { return loop::binary(BinaryOp::k_max, a, b); };
    auto smaller = [](Expr a, Expr b) { return loop::binary(BinaryOp::k_min, a, b); };
    if (node.attributes.mode == PadMode::kReflect) {
      p = larger(p, loop::const_index(0) - p);  // mirrored at 0
      p = smaller(p, symbols_(last * 2) - p);   // and at the last element
    } else {
      p = larger(loop::const_index(0), smaller(p, symbols_(last)));
    }
    axes.push_back({name_value("p", p), max(extent, 1)});
    return IndexExpr::axis(static_cast<int>(axes.size()) - 1);
  });
}

// An axis whose position is read from memory: negative counts from the end, then clamped into range.
IndexExpr Evaluator::dynamic_axis(ValueId index_value, const std::vector<IndexExpr>& at, const Dim& extent) {
  if (std::optional<IndexExpr> known = schedule::index_of_table(graph_, index_value, at, extent, extents()))
    return *known;
  Expr index = loop::cast(DType::kI64, evaluate(index_value, at));
  if (graph_.dtype(index_value) == DType::kU8 && always_le(256, extent)) {  // always in range
    axes.push_back({index, extent});
    return IndexExpr::axis(static_cast<int>(axes.size()) - 1);
  }
  index = name_value("i", index);
  Expr wrapped = loop::select(loop::binary(BinaryOp::k_lt, index, loop::const_index(0)),
                              index + symbols_(extent), index);
  wrapped = loop::binary(BinaryOp::k_max, loop::const_index(0),
                         loop::binary(BinaryOp::k_min, wrapped, symbols_(extent - 1)));
  axes.push_back({name_value("i", wrapped), max(extent, 1)});
  return IndexExpr::axis(static_cast<int>(axes.size()) - 1);
}

std::vector<IndexExpr> Evaluator::gather_indices(const Node& node, const std::vector<IndexExpr>& indices) {
  return schedule::gathered_read(graph_, node, indices,
                                 [&](ValueId v, const std::vector<IndexExpr>& at, const Dim& extent) {
                                   return dynamic_axis(v, at, extent);
                                 });
}

}  // namespace quernel::lower
