#include "graph/outline.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/control.h"

namespace quernel {
namespace {

constexpr int kMaxMovedViews = 64;  // in a chain

// Nodes that are added to the graph while it lives are a body's.
class Outline {
 public:
  Outline(GraphBuilder& build, std::vector<ValueId>& operands)
      : build_(build),
        graph_(build.graph()),
        operands_(operands),
        first_node_(graph_.nodes.size()),
        first_source_(graph_.symbol_sources.size()) {}

  // A value inside for an operand of the node around.
  ValueId add_input(ValueId operand) {
    ValueId v = graph_.add_input("", graph_.type(operand));
    graph_.inputs.pop_back();
    inputs_.push_back(v);
    return v;
  }

  // Moves what the outputs need. Operands are added for the values outside that are read.
  std::optional<Graph> move(const std::string& name, const std::vector<ValueId>& outputs, ValueId condition,
                            const std::string& condition_symbol) {
    body_.name = name;
    body_.symbols = graph_.symbols;
    for (size_t i = 0; i < inputs_.size(); ++i) mapped_[inputs_[i]] = add_body_input(inputs_[i]);
    // What an earlier branch has read.
    for (size_t i = inputs_.size(); i < operands_.size(); ++i)
      mapped_[operands_[i]] = add_body_input(operands_[i]);
    mark_live(outputs, condition);
    for (size_t i = first_node_; i < graph_.nodes.size(); ++i)
      if (ValueId v = graph_.nodes[i].output; live_.contains(v) && !copy(graph_.nodes[i]))
        return std::nullopt;
    for (ValueId v : outputs) {
      ValueId moved = inside(v, 0);
      body_.outputs.push_back({unique_output(graph_.values[v].name), moved});
    }
    if (condition != kNoValue) body_.symbol_sources.push_back({condition_symbol, inside(condition, 0)});
    for (size_t i = first_source_; i < graph_.symbol_sources.size(); ++i)
      body_.symbol_sources.push_back(
          {graph_.symbol_sources[i].symbol, inside(graph_.symbol_sources[i].value, 0)});
    graph_.symbol_sources.resize(first_source_);
    if (!build_.ok()) return std::nullopt;
    return std::move(body_);
  }

  size_t first_node() const { return first_node_; }
  bool has_sources() const { return graph_.symbol_sources.size() > first_source_; }

 private:
  std::string unique_output(const std::string& name) {
    std::string result = name;
    for (int i = 2; !output_names_.insert(result).second; ++i) result = name + "_" + std::to_string(i);
    return result;
  }

  ValueId add_body_input(ValueId v) { return body_.add_input(graph_.values[v].name, graph_.type(v)); }

  void mark_live(const std::vector<ValueId>& outputs, ValueId condition) {
    live_.insert(outputs.begin(), outputs.end());
    live_.insert(condition);
    for (size_t i = first_source_; i < graph_.symbol_sources.size(); ++i)
      live_.insert(graph_.symbol_sources[i].value);
    std::map<int32_t, std::vector<ValueId>> loops;
    for (const auto& [token, user] : uses_of_loop_symbols(graph_)) loops[user].push_back(token);
    for (size_t i = graph_.nodes.size(); i-- > first_node_;) {
      const Node& node = graph_.nodes[i];
      if (!live_.contains(node.output)) continue;
      live_.insert(node.inputs.begin(), node.inputs.end());
      if (auto it = loops.find(static_cast<int32_t>(i)); it != loops.end())
        live_.insert(it->second.begin(), it->second.end());
    }
  }

  bool copy(const Node& node) {
    std::vector<ValueId> inputs;
    for (ValueId v : node.inputs) inputs.push_back(inside(v, 0));
    Expected<ValueId> v = body_.add(node.op, std::move(inputs), node.attributes, node.location,
                                    graph_.values[node.output].name);
    if (!v) build_.fail(v.take_errors().front());
    if (v) mapped_[node.output] = *v;
    return static_cast<bool>(v);
  }

  // The value inside for one that may be outside: constants and views are made again, others become inputs.
  ValueId inside(ValueId v, int depth) {
    if (auto it = mapped_.find(v); it != mapped_.end()) return it->second;
    const Node* node = graph_.def(v);
    bool moves = node && depth < kMaxMovedViews &&
                 (node->op == OpKind::k_constant || node->op == OpKind::k_dims ||
                  (is_movement(node->op) && node->op != OpKind::k_contiguous));
    if (moves) {
      Node view = *node;
      for (ValueId operand : view.inputs) inside(operand, depth + 1);
      return copy(view) ? mapped_[v] : kNoValue;
    }
    operands_.push_back(v);
    return mapped_[v] = add_body_input(v);
  }

  GraphBuilder& build_;
  Graph& graph_;
  std::vector<ValueId>& operands_;  // of the node around
  size_t first_node_;
  size_t first_source_;
  std::vector<ValueId> inputs_;
  Graph body_;
  std::map<ValueId, ValueId> mapped_;
  std::set<ValueId> live_;
  std::set<std::string> output_names_;
};

// One bool as a scalar.
ValueId scalar_condition(GraphBuilder& build, ValueId v) {
  if (v == kNoValue || !build.ok()) return kNoValue;
  Shape shape = build.graph().shape(v);
  if (!(element_count(shape) == Dim(1)) || build.graph().dtype(v) != DType::kBool)
    return build.fail(invalid_input(
        "expected a condition of one bool, found " + to_string(build.graph().type(v)), build.location()));
  return shape.empty() ? v : build.reshape(v, {});
}

// Whether every dim is known outside of the loop that defines `symbol`, and of what its body defines.
bool known_outside(const Graph& body, const TensorType& type, const std::string& symbol) {
  std::map<std::string, ValueId> definers = symbol_definers(body);
  std::vector<Symbol> symbols;
  for (const Dim& d : type.shape) d.collect_symbols(symbols);
  return std::none_of(symbols.begin(), symbols.end(),
                      [&](const Symbol& s) { return s.name == symbol || definers.contains(s.name); });
}

bool mentions(const TensorType& type, const std::string& symbol) {
  std::vector<Symbol> symbols;
  for (const Dim& d : type.shape) d.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == symbol; });
}

// Whether a body gave at least `least` results, each of them a value.
bool check_results(GraphBuilder& build, const std::vector<ValueId>& results, size_t least) {
  if (results.size() >= least &&
      std::all_of(results.begin(), results.end(), [&](ValueId v) { return v > kNoValue; }))
    return true;
  build.fail(internal_error("a body without one of its results", build.location()));
  return false;
}

bool is_limited(const Dim& d) { return d.is_bound() || d.upper_bound().bounds().hi < INT64_MAX; }

}  // namespace

std::optional<std::vector<ValueId>> build_loop(
    GraphBuilder& build, const LoopSpec& spec,
    const std::function<std::optional<LoopStep>(const Dim&, const std::vector<ValueId>&)>& step) {
  Graph& graph = build.graph();
  ValueId condition = scalar_condition(build, spec.condition);
  if (!build.ok()) return std::nullopt;
  auto control = std::make_shared<Control>();
  control->carried = static_cast<int>(spec.initial.size());
  control->count = spec.count;
  Symbol symbol{spec.name, 0, INT64_MAX, 1, true, {}};
  if (spec.count && is_limited(*spec.count)) {
    symbol.bound = {max(spec.count->upper_bound(), 0)};
    symbol.max = symbol.bound[0].bounds().hi;
  }
  Dim iteration = graph.add_symbol(symbol);
  control->symbol = iteration.name();

  std::vector<ValueId> operands = spec.initial, carried;
  Outline outline(build, operands);
  for (ValueId v : spec.initial) carried.push_back(outline.add_input(v));
  Location location = build.location();
  std::optional<LoopStep> made = step(iteration, carried);
  build.set_location(location);
  if (!made || !build.ok()) return std::nullopt;
  ValueId again = condition == kNoValue ? kNoValue : scalar_condition(build, made->condition);
  if (!build.ok()) return std::nullopt;
  // Declared for the body, too; bound around it when that is done.
  if (again != kNoValue) control->condition = graph.add_symbol({spec.name + "_goes_on", 0, 1, 1, true, {}});
  std::vector<ValueId> outputs = made->carried;
  outputs.insert(outputs.end(), made->scanned.begin(), made->scanned.end());
  if (!check_results(build, outputs, spec.initial.size())) return std::nullopt;
  // A scan output whose elements share a byte with those of the next iteration is scanned as bytes.
  std::vector<DType> scanned_from;  // the dtypes of scan outputs
  for (size_t i = carried.size(); i < outputs.size(); ++i) {
    const TensorType type = graph.type(outputs[i]);
    scanned_from.push_back(type.dtype);
    if (!fills_bytes(type))
      outputs[i] = build.cast(outputs[i], is_signed_integer(type.dtype) ? DType::kI8 : DType::kU8);
  }
  for (size_t i = 0; i < carried.size(); ++i)
    if (graph.type(outputs[i]) != graph.type(spec.initial[i])) {
      build.fail(unsupported(
          "expected value " + std::to_string(i) + " that the loop carries to stay of type " +
              to_string(graph.type(spec.initial[i])) + ", found " + to_string(graph.type(outputs[i])),
          location, "give it a fixed size, or fix the loop's number of iterations"));
      return std::nullopt;
    }
  std::optional<Graph> body =
      outline.move("body", outputs, again, control->condition ? control->condition->name() : std::string());
  if (!body) return std::nullopt;
  if (again != kNoValue) graph.symbol_sources.push_back({control->condition->name(), condition});
  bool limited = spec.count && is_limited(*spec.count);
  for (const Value& value : body->values)
    if (!limited && mentions(value.type, control->symbol)) {
      build.fail(unsupported("a value whose size follows from the number of the iteration, " +
                                 to_string(value.type) + ", needs a limit of that number, found none",
                             location,
                             "give the loop a trip count that is known or follows from input shapes"));
      return std::nullopt;
    }
  for (size_t i = carried.size(); i < outputs.size(); ++i) {
    if (!known_outside(*body, graph.type(outputs[i]), control->symbol)) {
      build.fail(unsupported(
          "expected a scan output of one size in all iterations, found " + to_string(graph.type(outputs[i])),
          location));
      return std::nullopt;
    }
    if (!limited) {
      build.fail(unsupported("a loop with scan outputs needs a limit of its number of iterations, found none",
                             location,
                             "give the loop a trip count that is known or follows from input shapes"));
      return std::nullopt;
    }
  }
  control->bodies.push_back(std::move(*body));
  Attributes attributes;
  attributes.control = std::move(control);
  ValueId token = build.add(OpKind::k_loop, std::move(operands), std::move(attributes));
  std::vector<ValueId> results;
  for (size_t k = 0; k < outputs.size(); ++k)
    results.push_back(add_result(build, token, static_cast<int64_t>(k)));
  if (!build.ok()) return std::nullopt;
  for (size_t i = 0; i < scanned_from.size(); ++i) {
    ValueId& result = results[carried.size() + i];
    result = build.cast(result, scanned_from[i]);
  }
  return results;
}

std::optional<std::vector<ValueId>> build_branch(GraphBuilder& build, const std::string& name,
                                                 ValueId condition, const BranchBody& yes,
                                                 const BranchBody& no, int select_limit) {
  Graph& graph = build.graph();
  condition = scalar_condition(build, condition);
  if (!build.ok()) return std::nullopt;
  Location location = build.location();
  auto control = std::make_shared<Control>();
  std::vector<ValueId> operands, outputs[2];
  bool select = true;
  std::optional<Graph> bodies[2];
  for (int side = 0; side < 2; ++side) {
    Outline outline(build, operands);
    std::optional<std::vector<ValueId>> made = (side == 0 ? yes : no)();
    build.set_location(location);
    if (!made || !build.ok()) return std::nullopt;
    outputs[side] = std::move(*made);
    if (!check_results(build, outputs[side], outputs[0].size())) return std::nullopt;
    int cost = 0;
    for (size_t i = outline.first_node(); i < graph.nodes.size(); ++i) {
      OpKind op = graph.nodes[i].op;
      cost += is_elementwise(op)                                                    ? 1
              : op == OpKind::k_constant || op == OpKind::k_dims || is_movement(op) ? 0
                                                                                    : 1000;
    }
    select = select && cost <= select_limit && !outline.has_sources();
    bodies[side] = outline.move(side == 0 ? "then" : "else", outputs[side], kNoValue, {});
    if (!bodies[side]) return std::nullopt;
  }
  for (size_t i = 0; i < outputs[0].size(); ++i) {
    const TensorType &a = graph.type(outputs[0][i]), &b = graph.type(outputs[1][i]);
    bool known = known_outside(*bodies[0], a, {}) && known_outside(*bodies[1], b, {});
    if (a == b && known) continue;
    build.fail(unsupported("expected branches with results of one type that is known before, found " +
                               to_string(a) + " and " + to_string(b),
                           location, "fix the inputs that the condition depends on"));
    return std::nullopt;
  }
  std::vector<ValueId> results;
  for (size_t i = 0; i < outputs[0].size(); ++i)
    select = select && (outputs[0][i] == outputs[1][i] || is_compute(graph.dtype(outputs[0][i])));
  if (select) {
    for (size_t i = 0; i < outputs[0].size(); ++i)
      results.push_back(outputs[0][i] == outputs[1][i]
                            ? outputs[0][i]
                            : build.where(condition, outputs[0][i], outputs[1][i]));
    return build.ok() ? std::optional(std::move(results)) : std::nullopt;
  }
  control->condition = graph.add_symbol({name, 0, 1, 1, true, {}}, condition);
  // What only the second reads is an input of the first, too.
  for (size_t i = bodies[0]->inputs.size(); i < operands.size(); ++i)
    bodies[0]->add_input(graph.values[operands[i]].name, graph.type(operands[i]));
  for (std::optional<Graph>& body : bodies) control->bodies.push_back(std::move(*body));
  Attributes attributes;
  attributes.control = std::move(control);
  ValueId token = build.add(OpKind::k_branch, std::move(operands), std::move(attributes));
  for (size_t k = 0; k < outputs[0].size(); ++k)
    results.push_back(add_result(build, token, static_cast<int64_t>(k)));
  if (!build.ok()) return std::nullopt;
  return results;
}

}  // namespace quernel
