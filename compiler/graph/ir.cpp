#include "graph/ir.h"

#include <algorithm>
#include <unordered_map>

#include "graph/control.h"

namespace quernel {
namespace {

constexpr std::string_view kOpNames[] = {
#define QUERNEL_OP(name, family) #name,
#include "ops/ops.def"
};
constexpr int kOpCount = static_cast<int>(std::size(kOpNames));

}  // namespace

std::string_view to_string(OpKind op) { return kOpNames[static_cast<int>(op)]; }

std::optional<OpKind> parse_op_kind(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i)
    if (kOpNames[i] == name) return static_cast<OpKind>(i);
  return std::nullopt;
}

// The elementwise ops stand first in ops.def, in the order of scalar_ops.def.
namespace {
constexpr int kFirstBinary = static_cast<int>(OpKind::k_add);
constexpr int kFirstTernary = static_cast<int>(OpKind::k_where);
}  // namespace

std::optional<UnaryOp> unary_op(OpKind op) {
  int i = static_cast<int>(op);
  return i < kFirstBinary ? std::optional(static_cast<UnaryOp>(i)) : std::nullopt;
}
std::optional<BinaryOp> binary_op(OpKind op) {
  int i = static_cast<int>(op);
  return i >= kFirstBinary && i < kFirstTernary ? std::optional(static_cast<BinaryOp>(i - kFirstBinary))
                                                : std::nullopt;
}
OpKind op_kind(UnaryOp op) { return static_cast<OpKind>(static_cast<int>(op)); }
OpKind op_kind(BinaryOp op) { return static_cast<OpKind>(static_cast<int>(op) + kFirstBinary); }

bool is_elementwise(OpKind op) { return op <= OpKind::k_cast; }
bool is_movement(OpKind op) { return op >= OpKind::k_reshape && op <= OpKind::k_contiguous; }
bool is_reduce(OpKind op) { return op >= OpKind::k_reduce_sum && op <= OpKind::k_reduce_argmin; }
bool is_winograd(OpKind op) { return op == OpKind::k_winograd_input || op == OpKind::k_winograd_output; }
bool is_scan(OpKind op) { return op >= OpKind::k_scan_sum && op <= OpKind::k_scan_min; }
bool is_gather(OpKind op) { return op >= OpKind::k_take && op <= OpKind::k_gather_nd; }
bool is_scatter(OpKind op) { return op >= OpKind::k_scatter_elements && op <= OpKind::k_scatter_nd; }
bool is_control(OpKind op) {
  return op == OpKind::k_loop || op == OpKind::k_branch || op == OpKind::k_on_companion;
}
bool gives_token(OpKind op) { return is_control(op) || op == OpKind::k_custom; }

std::string to_string(const TensorType& type) {
  return std::string(to_string(type.dtype)) + to_string(type.shape);
}

ValueId Graph::add_input(std::string name, TensorType type, Location) {
  ValueId id = static_cast<ValueId>(values.size());
  values.push_back({unique_name(std::move(name)), std::move(type), -1});
  inputs.push_back(id);
  return id;
}

std::string Graph::unique_name(std::string name) {
  if (name.empty()) {
    do name = std::to_string(next_name_++);
    while (!names_.insert(name).second);
    return name;
  }
  // Numbers given by hand (a parsed text) are not given again.
  if (name.size() < 9 && name.find_first_not_of("0123456789") == std::string::npos)
    next_name_ = std::max(next_name_, std::stoi(name) + 1);
  if (names_.insert(name).second) return name;
  std::string base = name + "_";
  int32_t& next = suffixes_[base];
  do name = base + std::to_string(++next);
  while (!names_.insert(name).second);
  return name;
}

void Graph::rename(ValueId v, const std::string& name) {
  if (values[v].name == name) return;
  names_.erase(values[v].name);
  values[v].name = unique_name(name);
}

Expected<ValueId> Graph::add(OpKind op, std::vector<ValueId> node_inputs, Attributes attributes,
                             Location location, std::string name) {
  const OpInfo& info = op_info(op);
  int count = static_cast<int>(node_inputs.size());
  auto fail = [&](Diagnostic d) {
    d.message = std::string(info.name) + ": " + d.message;
    if (d.place.node.empty()) d.place = location;
    return d;
  };
  if (count < info.min_inputs || count > info.max_inputs)
    return fail(invalid_input("expected " + std::to_string(info.min_inputs) + " operands, found " +
                              std::to_string(count)));
  std::vector<TensorType> types;
  types.reserve(node_inputs.size());
  for (ValueId v : node_inputs) {
    if (v < 0 || v >= static_cast<ValueId>(values.size()))
      return fail(internal_error("operand " + std::to_string(v) + " is not defined"));
    types.push_back(values[v].type);
  }
  Expected<TensorType> type = info.infer(op, types, attributes);
  if (!type) return fail(type.take_errors().front());
  ValueId id = static_cast<ValueId>(values.size());
  values.push_back({unique_name(std::move(name)), std::move(*type), static_cast<int32_t>(nodes.size())});
  nodes.push_back({op, std::move(node_inputs), id, std::move(attributes), std::move(location)});
  return id;
}

const Tensor* Graph::constant(ValueId v) const {
  const Node* node = def(v);
  return node && node->op == OpKind::k_constant ? &node->attributes.tensor : nullptr;
}

std::vector<int32_t> Graph::use_counts() const {
  std::vector<int32_t> counts(values.size(), 0);
  for (const Node& node : nodes)
    for (ValueId v : node.inputs) ++counts[v];
  for (const Output& output : outputs) ++counts[output.value];
  for (const SymbolSource& source : symbol_sources) ++counts[source.value];
  for (const auto& [token, user] : uses_of_loop_symbols(*this)) ++counts[token];
  return counts;
}

Dim Graph::add_symbol(Symbol symbol, ValueId source) {
  std::string base = symbol.name;
  for (int i = 2; find_symbol(symbol.name); ++i) symbol.name = base + "_" + std::to_string(i);
  if (source != kNoValue) {
    symbol.runtime = true;
    symbol_sources.push_back({symbol.name, source});
  }
  symbols.push_back(symbol);
  return Dim::symbol(std::move(symbol));
}

const Symbol* Graph::find_symbol(std::string_view symbol_name) const {
  for (const Symbol& s : symbols)
    if (s.name == symbol_name) return &s;
  return nullptr;
}

const Graph::State* Graph::state_of_input(size_t index) const {
  for (const State& state : states)
    if (state.input == index) return &state;
  return nullptr;
}

const Graph::State* Graph::state_of_output(size_t index) const {
  for (const State& state : states)
    if (state.output == index) return &state;
  return nullptr;
}

ValueId Graph::symbol_source(std::string_view symbol_name) const {
  for (const SymbolSource& s : symbol_sources)
    if (s.symbol == symbol_name) return s.value;
  return kNoValue;
}

Attributes bind_symbols(const Attributes& attributes, const std::map<std::string, int64_t>& bindings) {
  Attributes a = attributes;
  for (Shape* dims : {&a.shape, &a.starts, &a.stops})
    for (Dim& d : *dims) d = d.substitute(bindings);
  for (IndexExpr& e : a.map.indices) e = bind_symbols(e, bindings);
  for (IndexGuard& g : a.map.guards)
    g = {bind_symbols(g.expr, bindings), g.lo.substitute(bindings), g.hi.substitute(bindings)};
  for (Contraction::Axis& axis : a.contraction.axes) axis.extent = axis.extent.substitute(bindings);
  for (std::vector<IndexExpr>* map : {&a.contraction.a, &a.contraction.b, &a.contraction.out})
    for (IndexExpr& e : *map) e = bind_symbols(e, bindings);
  if (a.custom) {
    auto custom = std::make_shared<CustomOp>(*a.custom);
    for (TensorType& type : custom->results)
      for (Dim& d : type.shape) d = d.substitute(bindings);
    a.custom = std::move(custom);
  }
  return a;
}

std::vector<Symbol> symbols_of(const Graph& graph, const Node& node) {
  std::vector<Symbol> symbols;
  const Attributes& a = node.attributes;
  for (const Shape* dims : {&graph.shape(node.output), &a.shape, &a.starts, &a.stops})
    for (const Dim& d : *dims) d.collect_symbols(symbols);
  auto collect = [&](const std::vector<IndexExpr>& exprs) {
    for (const IndexExpr& e : exprs) collect_symbols(e, symbols);
  };
  collect(a.map.indices);
  for (const IndexGuard& g : a.map.guards) {
    collect_symbols(g.expr, symbols);
    g.lo.collect_symbols(symbols);
    g.hi.collect_symbols(symbols);
  }
  for (const Contraction::Axis& axis : a.contraction.axes) axis.extent.collect_symbols(symbols);
  for (const std::vector<IndexExpr>* map : {&a.contraction.a, &a.contraction.b, &a.contraction.out})
    collect(*map);
  if (a.custom)
    for (const TensorType& type : a.custom->results)
      for (const Dim& d : type.shape) d.collect_symbols(symbols);
  if (a.control) {
    for (const std::optional<Dim>* dim : {&a.control->count, &a.control->condition})
      if (*dim) (*dim)->collect_symbols(symbols);
    for (const Graph& body : a.control->bodies) {
      // Not what the body defines itself.
      std::map<std::string, ValueId> own = symbol_definers(body);
      own[a.control->symbol] = node.output;
      for (const Node& inner : body.nodes)
        for (const Symbol& s : symbols_of(body, inner))
          if (!own.contains(s.name)) Dim::symbol(s).collect_symbols(symbols);
    }
  }
  return symbols;
}

}  // namespace quernel
