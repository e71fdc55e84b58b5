#include "graph/interpret.h"

#include <algorithm>

#include "graph/control.h"
#include "graph/empty_choice.h"
#include "graph/interpret_parts.h"

namespace quernel {
namespace {

using interpreter::Operands;
using interpreter::ResultType;

// Refused rather than attempted: nothing that is worth checking is larger.
constexpr int64_t kMaxBytes = int64_t{1} << 35;

using Bindings = std::map<std::string, int64_t>;

Expected<ResultType> result_type(const TensorType& type, const Node& node) {
  if (!is_static(type.shape))
    return unsupported("the interpreter expects the value of every symbol, found " + to_string(type),
                       node.location, "bind the symbols first");
  ResultType result{type.dtype, static_dims(type.shape)};
  std::optional<int64_t> count = element_count(result.dims);
  if (!count || *count > kMaxBytes / element_size(type.dtype))
    return unsupported("the interpreter's tensors are limited to " + std::to_string(kMaxBytes) +
                           " bytes, found " + to_string(type),
                       node.location);
  return result;
}

Status check_range(const Symbol& symbol, int64_t value) {
  if (value >= symbol.min && value <= symbol.max && value % symbol.multiple_of == 0) return {};
  return invalid_input(
      "symbol '" + symbol.name + "': expected " + std::to_string(symbol.min) + ".." +
      std::to_string(symbol.max) +
      (symbol.multiple_of > 1 ? ", a multiple of " + std::to_string(symbol.multiple_of) : "") + ", found " +
      std::to_string(value));
}

// Checks the inputs and takes the symbols' values from their shapes.
Status bind_inputs(const Graph& graph, const std::vector<Tensor>& inputs, Bindings& bindings) {
  if (inputs.size() != graph.inputs.size())
    return invalid_input("expected " + std::to_string(graph.inputs.size()) + " inputs, found " +
                         std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = graph.shape(graph.inputs[i]);
    for (size_t d = 0; d < shape.size() && shape.size() == inputs[i].dims.size(); ++d)
      if (shape[d].kind() == Dim::Kind::kSymbol) bindings.try_emplace(shape[d].name(), inputs[i].dims[d]);
  }
  for (const Symbol& symbol : graph.symbols)
    if (auto it = bindings.find(symbol.name); it != bindings.end())
      QUERNEL_CHECK(check_range(symbol, it->second));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = graph.values[graph.inputs[i]];
    TensorType expected = value.type, found{inputs[i].dtype, make_shape(inputs[i].dims)};
    for (Dim& d : expected.shape) d = d.substitute(bindings);
    if (found != expected)
      return invalid_input("input '" + value.name + "': expected " + to_string(value.type) +
                           (expected == value.type ? "" : " = " + to_string(expected)) + ", found " +
                           to_string(found));
    auto expected_bytes = static_cast<size_t>(byte_size(found.dtype, inputs[i].count()));
    if (inputs[i].bytes.size() != expected_bytes)
      return invalid_input("input '" + value.name + "': expected " + std::to_string(expected_bytes) +
                           " bytes, found " + std::to_string(inputs[i].bytes.size()));
  }
  return {};
}

Status check_choices(const Node& node, const ResultType& result, const Operands& operands) {
  if (operands.empty() || result.count() == 0) return {};
  TensorType x{operands[0]->dtype, make_shape(operands[0]->dims)};
  std::optional<Dim> n =
      choices(node.op, x, node.attributes, operands.size() > 1 ? make_shape(operands[1]->dims) : Shape());
  if (!n || always_le(1, *n)) return {};
  return invalid_input("expected elements to choose from, found too few in " + to_string(x), node.location);
}

Expected<Tensor> run_node(const Node& node, const TensorType& type, const Operands& operands) {
  QUERNEL_TRY(ResultType result, result_type(type, node));
  QUERNEL_CHECK(check_choices(node, result, operands));
  if (node.op == OpKind::k_constant) return node.attributes.tensor;
  // Another dim may be huge: tables by dim would be, too.
  if (result.count() == 0) return Tensor{result.dtype, result.dims, {}};
  if (node.op == OpKind::k_dims) {
    std::vector<int64_t> elements;
    for (const Dim& d : node.attributes.shape) {
      if (!d.is_const())
        return unsupported("the interpreter expects the value of every symbol, found " + to_string(d),
                           node.location, "bind the symbols first");
      elements.push_back(d.value());
    }
    return i64_tensor(result.dims, elements);
  }
  if (is_elementwise(node.op)) return interpreter::run_elementwise(node, operands, result);
  if (is_movement(node.op)) return interpreter::run_movement(node, operands, result);
  if (is_reduce(node.op)) return interpreter::run_reduce(node, operands, result);
  if (is_scan(node.op)) return interpreter::run_scan(node, operands, result);
  if (is_gather(node.op)) return interpreter::run_gather(node, operands, result);
  if (is_scatter(node.op)) return interpreter::run_scatter(node, operands, result);
  if (is_winograd(node.op)) return interpreter::run_winograd(node, operands, result);
  switch (node.op) {
    case OpKind::k_bitcast:
      return interpreter::run_bitcast(node, operands, result);
    case OpKind::k_dequantize:
      return interpreter::run_dequantize(node, operands, result);
    case OpKind::k_dequantize_rows:
      return interpreter::run_dequantize_rows(node, operands, result);
    case OpKind::k_cat:
      return interpreter::run_cat(node, operands, result);
    case OpKind::k_contract:
      return interpreter::run_contract(node, operands, result);
    case OpKind::k_argsort:
      return interpreter::run_sort(node, operands, result);
    default:
      return internal_error("the interpreter does not know op " + std::string(to_string(node.op)),
                            node.location);
  }
}

using Tensors = std::vector<Tensor>;

// What a run needs beside the graph. Symbols that get values while it runs keep them in `bindings`.
struct Environment {
  Bindings bindings;
  const CustomFunctions& custom;
};

Expected<Tensors> run_graph(const Graph& graph, const Tensors& inputs, Environment& environment);

Status check_bound(Symbol symbol, int64_t value, const Bindings& bindings) {
  if (!symbol.bound.empty()) symbol.max = symbol.bound[0].evaluate(bindings).value_or(symbol.max);
  return check_range(symbol, value);
}

Expected<int64_t> evaluate_dim(const Dim& dim, const Bindings& bindings, const Node& node) {
  std::optional<int64_t> value = dim.evaluate(bindings);
  if (!value)
    return unsupported("the interpreter expects the value of every symbol, found " + to_string(dim),
                       node.location, "bind the symbols first");
  return *value;
}

// Tensors of one type as one with a leading dim.
Expected<Tensor> stacked(const Tensors& parts, TensorType type, const Bindings& bindings, const Node& node) {
  for (Dim& d : type.shape) d = d.substitute(bindings);
  QUERNEL_TRY(ResultType whole, result_type(type, node));
  whole.dims[0] = static_cast<int64_t>(parts.size());
  std::vector<uint8_t> elements;
  for (const Tensor& part : parts) {
    bool packed = is_packed(type.dtype);
    std::vector<uint8_t> own =
        packed ? interpreter::unpack(part)
               : std::vector<uint8_t>(part.bytes.data(), part.bytes.data() + part.bytes.size());
    elements.insert(elements.end(), own.begin(), own.end());
  }
  if (is_packed(type.dtype)) elements = interpreter::pack(elements);
  return Tensor{type.dtype, std::move(whole.dims), Bytes::own(std::move(elements))};
}

Expected<Tensors> run_loop(const Node& node, Tensors operands, Environment& environment) {
  Bindings& bindings = environment.bindings;
  const Control& control = *node.attributes.control;
  const Graph& body = control.bodies[0];
  const Symbol& symbol = *body.find_symbol(control.symbol);
  auto carried = static_cast<size_t>(control.carried);
  std::vector<Tensors> scanned(body.outputs.size() - carried);
  int64_t count = INT64_MAX, i = 0;
  if (control.count) {
    QUERNEL_TRY(count, evaluate_dim(*control.count, bindings, node));
  }
  for (; i < count; ++i) {
    if (control.condition) {
      QUERNEL_TRY(int64_t goes_on, evaluate_dim(*control.condition, bindings, node));
      if (goes_on == 0) break;
    }
    QUERNEL_CHECK(check_bound(symbol, i, bindings));
    bindings[control.symbol] = i;
    QUERNEL_TRY(Tensors outputs, run_graph(body, operands, environment));
    for (size_t k = 0; k < carried; ++k) operands[k] = std::move(outputs[k]);
    for (size_t k = carried; k < outputs.size(); ++k) scanned[k - carried].push_back(std::move(outputs[k]));
  }
  bindings[control.symbol] = i;
  Tensors results(std::make_move_iterator(operands.begin()),
                  std::make_move_iterator(operands.begin() + static_cast<std::ptrdiff_t>(carried)));
  for (size_t k = carried; k < result_count(node); ++k) {
    QUERNEL_TRY(Tensor whole, stacked(scanned[k - carried], result_type(node, k), bindings, node));
    results.push_back(std::move(whole));
  }
  return results;
}

// Calls the function of that name and checks what it gives.
Expected<Tensors> run_custom(const Node& node, const Operands& operands, const Environment& environment) {
  Attributes bound = bind_symbols(node.attributes, environment.bindings);
  const CustomOp& op = *bound.custom;
  auto function = environment.custom.find(op.name);
  if (function == environment.custom.end())
    return unsupported("the interpreter does not know custom op '" + op.name + "'", node.location,
                       "give it a function of that name");
  for (const TensorType& type : op.results) {
    QUERNEL_TRY(ResultType checked, result_type(type, node));
  }
  QUERNEL_TRY(Tensors results, function->second(op, operands));
  if (results.size() != op.results.size())
    return invalid_input("custom op '" + op.name + "': expected " + std::to_string(op.results.size()) +
                             " results, found " + std::to_string(results.size()),
                         node.location);
  for (size_t k = 0; k < results.size(); ++k) {
    TensorType found{results[k].dtype, make_shape(results[k].dims)};
    if (found != op.results[k])
      return invalid_input("custom op '" + op.name + "', result " + std::to_string(k) + ": expected " +
                               to_string(op.results[k]) + ", found " + to_string(found),
                           node.location);
  }
  return results;
}

// All results of a node that gives a token.
Expected<Tensors> run_several(const Node& node, const Operands& operands, Environment& environment) {
  if (node.op == OpKind::k_custom) return run_custom(node, operands, environment);
  Tensors inputs;
  for (const Tensor* operand : operands) inputs.push_back(*operand);
  if (node.op == OpKind::k_loop) return run_loop(node, std::move(inputs), environment);
  if (node.op == OpKind::k_on_companion)
    return run_graph(node.attributes.control->bodies[0], inputs, environment);
  QUERNEL_TRY(int64_t condition,
              evaluate_dim(*node.attributes.control->condition, environment.bindings, node));
  return run_graph(node.attributes.control->bodies[condition != 0 ? 0 : 1], inputs, environment);
}

// Runs on inputs that have been checked.
Expected<Tensors> run_graph(const Graph& graph, const Tensors& inputs, Environment& environment) {
  Bindings& bindings = environment.bindings;
  std::vector<int32_t> uses_left = graph.use_counts();
  std::vector<Tensor> values(graph.values.size());
  std::map<ValueId, Tensors> results;  // by token
  for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];

  std::map<ValueId, std::vector<const Symbol*>> sources;
  for (const Graph::SymbolSource& s : graph.symbol_sources)
    sources[s.value].push_back(graph.find_symbol(s.symbol));
  auto bind_sources = [&](ValueId v) -> Status {
    auto it = sources.find(v);
    if (it == sources.end()) return {};
    for (const Symbol* symbol : it->second) {
      int64_t value = element_as_i64(values[v], 0);
      QUERNEL_CHECK(check_bound(*symbol, value, bindings));
      bindings[symbol->name] = value;
    }
    return {};
  };
  for (ValueId v : graph.inputs) QUERNEL_CHECK(bind_sources(v));
  for (const Node& node : graph.nodes) {
    if (uses_left[node.output] == 0) {
      for (ValueId v : node.inputs) --uses_left[v];
      continue;
    }
    Operands operands;
    for (ValueId v : node.inputs) operands.push_back(&values[v]);
    if (gives_token(node.op)) {
      QUERNEL_TRY(results[node.output], run_several(node, operands, environment));
    } else if (node.op == OpKind::k_result) {
      values[node.output] = results.at(node.inputs[0])[static_cast<size_t>(node.attributes.ints[0])];
      if (uses_left[node.inputs[0]] == 1) results.erase(node.inputs[0]);
    } else if (symbols_of(graph, node).empty()) {
      QUERNEL_TRY(values[node.output], interpret_node(graph, node, operands));
    } else {
      Node bound = node;
      bound.attributes = bind_symbols(node.attributes, bindings);
      TensorType type = graph.type(node.output);
      for (Dim& d : type.shape) d = d.substitute(bindings);
      QUERNEL_TRY(values[node.output], run_node(bound, type, operands));
    }
    QUERNEL_CHECK(bind_sources(node.output));
    for (ValueId v : node.inputs)
      if (--uses_left[v] == 0) values[v] = {};  // outputs hold a use of their own
  }

  Tensors outputs;
  for (const Graph::Output& output : graph.outputs) outputs.push_back(values[output.value]);
  return outputs;
}

}  // namespace

Expected<Tensor> interpret_node(const Graph& graph, const Node& node,
                                const std::vector<const Tensor*>& operands) {
  return run_node(node, graph.type(node.output), operands);
}

Expected<std::vector<Tensor>> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                        Bindings bindings, const CustomFunctions& custom) {
  QUERNEL_CHECK(bind_inputs(graph, inputs, bindings));
  Environment environment{std::move(bindings), custom};
  return run_graph(graph, inputs, environment);
}

}  // namespace quernel
