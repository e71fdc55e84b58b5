#include "graph/io_types.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "graph/control.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

bool may_have_scale(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kU16;
}

// Whether an op moves elements and makes none.
bool moves_elements(const Node& node) {
  return node.op == OpKind::k_reshape || node.op == OpKind::k_permute || node.op == OpKind::k_expand ||
         node.op == OpKind::k_slice || node.op == OpKind::k_flip;
}

using ValuesByName = std::unordered_map<std::string, ValueId>;

ValuesByName values_by_name(const Graph& graph) {
  ValuesByName values;
  for (size_t v = 0; v < graph.values.size(); ++v)
    values.emplace(graph.values[v].name, static_cast<ValueId>(v));
  return values;
}

ValueId find(const ValuesByName& values, const std::string& name) {
  auto it = values.find(name);
  return it == values.end() ? kNoValue : it->second;
}

// The one scale of all; nothing where there are none or several.
void add_scale(std::map<std::string, IntegerScale>& to, const std::string& name,
               const std::vector<IntegerScale>& found) {
  bool same = std::all_of(found.begin(), found.end(), [&](const IntegerScale& s) { return s == found[0]; });
  if (!found.empty() && same) to.emplace(name, found[0]);
}

// Saturates, and gives the zero point for NaN.
ValueId quantize(GraphBuilder& build, ValueId x, const IntegerScale& q, DType dtype, ScaleRounding rounding) {
  constexpr double kHalf = 0.5;
  ValueId scaled = rounding == ScaleRounding::kEvenProduct
                       ? build.binary(BinaryOp::k_mul, x, static_cast<double>(1.0f / q.scale))
                       : build.binary(BinaryOp::k_div, x, static_cast<double>(q.scale));
  ValueId whole;
  if (rounding == ScaleRounding::kAway) {
    // trunc(x + half) would round 0.49999997 up: the fraction decides, which is exact.
    ValueId towards_zero = build.unary(UnaryOp::k_trunc, scaled);
    ValueId rest = build.unary(UnaryOp::k_abs, build.binary(BinaryOp::k_sub, scaled, towards_zero));
    ValueId away = build.binary(BinaryOp::k_add, towards_zero, build.unary(UnaryOp::k_sign, scaled));
    whole = build.where(build.binary(BinaryOp::k_ge, rest, kHalf), away, towards_zero);
  } else {
    whole = build.unary(UnaryOp::k_round, scaled);
  }
  ValueId y = build.cast(build.cast(whole, DType::kI32), DType::kI64);  // saturates
  y = build.binary(BinaryOp::k_add, y, static_cast<double>(q.zero_point));
  int bits = bit_width(dtype) - (is_signed_integer(dtype) ? 1 : 0);
  int64_t highest = (int64_t{1} << bits) - 1, lowest = is_signed_integer(dtype) ? -highest - 1 : 0;
  y = build.binary(BinaryOp::k_max, y, static_cast<double>(lowest));
  return build.cast(build.binary(BinaryOp::k_min, y, static_cast<double>(highest)), dtype);
}

ValueId dequantize(GraphBuilder& build, ValueId x, const IntegerScale& q) {
  ValueId y = build.cast(x, DType::kI32);
  if (q.zero_point != 0) y = build.binary(BinaryOp::k_sub, y, static_cast<double>(q.zero_point));
  return build.binary(BinaryOp::k_mul, build.cast(y, DType::kF32), static_cast<double>(q.scale));
}

class TypeChanger {
 public:
  TypeChanger(const Graph& graph, IoScales& scales, const std::string& file, std::vector<std::string>& notes)
      : old_(graph), scales_(scales), file_(file), notes_(notes), values_(values_by_name(graph)), to_(graph) {
    to_.graph.name = graph.name;
    to_.graph.symbols = graph.symbols;
    to_.graph.continue_names(graph);
    to_.mapped.assign(graph.values.size(), kNoValue);
    for (const Graph::Output& output : graph.outputs) results_.push_back(output.value);
  }

  Expected<Graph> run(IoTypes types) {
    bool real = types == IoTypes::kReal;
    if (!real) take_dequantizations();
    if (!real) take_quantizations();
    find_live();
    if (!real) check_inputs();
    if (!errors_.empty()) return std::move(errors_);
    add_inputs(real);
    QUERNEL_CHECK(copy_nodes());
    add_outputs(real);
    QUERNEL_CHECK(to_.build.take_status());
    if (!changed_) notes_.push_back("--io changes nothing: no input or output has a scale");
    return std::move(to_.graph);
  }

 private:
  Location place(const std::string& name, const char* role) const { return Location{file_, name, role}; }

  bool is_kept_input(size_t i) const { return old_.state_of_input(i) != nullptr; }
  bool is_real_input(size_t i) const { return !is_kept_input(i) && is_float(old_.dtype(old_.inputs[i])); }
  bool is_kept_output(size_t i) const { return old_.state_of_output(i) != nullptr; }

  // ---- without nodes next to inputs and outputs

  void take_dequantizations() {
    for (size_t i = 0; i < results_.size(); ++i) {
      const Graph::Output& output = old_.outputs[i];
      if (is_kept_output(i) || !is_float(old_.dtype(output.value))) continue;
      const std::string& name = old_.values[moved_from(old_, output.value)].name;
      auto node = std::find_if(scales_.nodes.begin(), scales_.nodes.end(),
                               [&](const ScaleNode& n) { return !n.makes_integers && n.real == name; });
      ValueId integers = node == scales_.nodes.end() ? kNoValue : find(values_, node->integers);
      if (integers == kNoValue) {
        errors_.push_back(unsupported("--io i8: output '" + output.name +
                                          "': expected a dequantization of one scale, found " +
                                          described(moved_from(old_, output.value)),
                                      place(output.name, "output"), "leave --io out"));
        continue;
      }
      results_[i] = integers;
      scales_.outputs.emplace(output.name, node->scale);
      changed_ = true;
    }
  }

  void take_quantizations() {
    for (const ScaleNode& node : scales_.nodes) {
      ValueId integers = node.makes_integers ? find(values_, node.integers) : kNoValue;
      ValueId real = integers == kNoValue ? kNoValue : find(values_, node.real);
      if (real == kNoValue || !(old_.shape(integers) == old_.shape(real))) continue;
      ValueId input = moved_from(old_, real);
      auto at = std::find(old_.inputs.begin(), old_.inputs.end(), input);
      if (at == old_.inputs.end() || !is_real_input(static_cast<size_t>(at - old_.inputs.begin()))) continue;
      // Those of other scales and dtypes stay readers of the input, which check_inputs finds.
      const std::string& name = old_.values[input].name;
      auto [dtype, fresh] = integer_inputs_.emplace(input, old_.dtype(integers));
      if (!fresh && !(dtype->second == old_.dtype(integers) && scales_.inputs.at(name) == node.scale))
        continue;
      scales_.inputs.emplace(name, node.scale);
      replaced_.emplace(integers, real);
      changed_ = true;
    }
  }

  std::string described(ValueId v) const {
    const Node* node = old_.def(v);
    if (!node) return "an input";
    return node->location.node.empty() ? "another node"
                                       : "'" + node->location.node + "' (" + node->location.op + ")";
  }

  void check_inputs() {
    for (size_t i = 0; i < old_.inputs.size(); ++i) {
      ValueId input = old_.inputs[i];
      if (!is_real_input(i) || !live_[static_cast<size_t>(input)]) continue;
      std::string found = "an output";
      for (const Node& node : old_.nodes) {
        bool reads = std::find(node.inputs.begin(), node.inputs.end(), input) != node.inputs.end();
        if (!is_copied(node) || !reads) continue;
        found = described(node.output);
        break;
      }
      const std::string& name = old_.values[input].name;
      errors_.push_back(unsupported("--io i8: input '" + name +
                                        "': expected only quantizations of one scale to read it, found " +
                                        found,
                                    place(name, "input"), "leave --io out"));
    }
  }

  // ---- the new graph

  bool is_copied(const Node& node) const {
    return live_[static_cast<size_t>(node.output)] && !replaced_.count(node.output);
  }

  void find_live() {
    live_.assign(old_.values.size(), 0);
    for (ValueId v : results_) live_[static_cast<size_t>(v)] = 1;
    for (const Graph::SymbolSource& source : old_.symbol_sources)
      live_[static_cast<size_t>(source.value)] = 1;
    std::unordered_map<int32_t, std::vector<ValueId>> loops;  // whose symbols a node uses
    for (const auto& [token, user] : uses_of_loop_symbols(old_)) loops[user].push_back(token);
    for (size_t i = old_.nodes.size(); i-- > 0;) {
      if (!is_copied(old_.nodes[i])) continue;
      for (ValueId v : old_.nodes[i].inputs) live_[static_cast<size_t>(v)] = 1;
      if (auto it = loops.find(static_cast<int32_t>(i)); it != loops.end())
        for (ValueId v : it->second) live_[static_cast<size_t>(v)] = 1;
    }
  }

  // The scale that an integer has by its name in `scales`, which is taken out; notes where there is none.
  std::optional<IntegerScale> take_scale(std::map<std::string, IntegerScale>& scales, const std::string& name,
                                         DType dtype, const char* role) {
    if (!may_have_scale(dtype)) return std::nullopt;
    auto it = scales.find(name);
    if (it == scales.end()) {
      notes_.push_back(std::string("--io f32: ") + role + " '" + name + "' stays " +
                       std::string(to_string(dtype)) + ": the model says no scale of it");
      return std::nullopt;
    }
    IntegerScale scale = it->second;
    scales.erase(it);
    changed_ = true;
    return scale;
  }

  void add_inputs(bool real) {
    std::vector<std::pair<ValueId, IntegerScale>> real_inputs;  // of the old graph
    for (size_t i = 0; i < old_.inputs.size(); ++i) {
      ValueId v = old_.inputs[i];
      TensorType type = old_.type(v);
      std::optional<IntegerScale> scale;
      if (real && !is_kept_input(i))
        scale = take_scale(scales_.inputs, old_.values[v].name, type.dtype, "input");
      if (scale) real_inputs.push_back({v, *scale}), type.dtype = DType::kF32;
      if (auto dtype = integer_inputs_.find(v); dtype != integer_inputs_.end()) type.dtype = dtype->second;
      to_.mapped[v] = to_.graph.add_input(old_.values[v].name, std::move(type));
    }
    for (const auto& [integers, real] : replaced_)
      to_.mapped[integers] = moved(to_.mapped[moved_from(old_, real)], real);
    for (const auto& [v, scale] : real_inputs) {
      to_.build.set_location(place(old_.values[v].name, "input"));
      to_.mapped[v] = quantize(to_.build, to_.mapped[v], scale, old_.dtype(v), scales_.rounding);
    }
  }

  // Returns `x` moved as `v` of the old graph is.
  ValueId moved(ValueId x, ValueId v) {
    std::vector<const Node*> nodes;  // the last first
    for (const Node* node = old_.def(v); node && moves_elements(*node); node = old_.def(node->inputs[0]))
      nodes.push_back(node);
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      to_.build.set_location((*node)->location);
      x = to_.build.add((*node)->op, {x}, (*node)->attributes);
    }
    return x;
  }

  Status copy_nodes() {
    for (const Node& node : old_.nodes) {
      if (!is_copied(node)) continue;
      to_.build.set_location(node.location);
      to_.mapped[node.output] = to_.copy(node);
      QUERNEL_CHECK(to_.build.take_status());
    }
    return {};
  }

  void add_outputs(bool real) {
    for (size_t i = 0; i < results_.size(); ++i) {
      ValueId value = to_.mapped[results_[i]];
      if (results_[i] != old_.outputs[i].value) value = moved(value, old_.outputs[i].value);
      const std::string& name = old_.outputs[i].name;
      std::optional<IntegerScale> scale;
      if (real && !is_kept_output(i))
        scale = take_scale(scales_.outputs, name, old_.dtype(results_[i]), "output");
      to_.build.set_location(place(name, "output"));
      if (scale) value = dequantize(to_.build, value, *scale);
      to_.graph.outputs.push_back({name, value});
    }
    for (const Graph::SymbolSource& source : old_.symbol_sources)
      to_.graph.symbol_sources.push_back({source.symbol, to_.mapped[source.value]});
    to_.graph.states = old_.states;
  }

  const Graph& old_;
  IoScales& scales_;
  const std::string& file_;
  std::vector<std::string>& notes_;
  ValuesByName values_;
  Rewriter to_;
  std::vector<ValueId> results_;             // values of the outputs
  std::map<ValueId, DType> integer_inputs_;  // real inputs that become integers
  std::map<ValueId, ValueId> replaced_;      // what quantizations make: what they read
  std::vector<char> live_;
  bool changed_ = false;
  Diagnostics errors_;
};

}  // namespace

bool is_scale_of(const IntegerScale& scale, DType dtype) {
  constexpr int64_t kMost = 1 << 16;
  return may_have_scale(dtype) && std::isfinite(scale.scale) && scale.scale > 0 &&
         scale.zero_point > -kMost && scale.zero_point < kMost;
}

ValueId moved_from(const Graph& graph, ValueId v) {
  for (const Node* node = graph.def(v); node && moves_elements(*node); node = graph.def(v))
    v = node->inputs[0];
  return v;
}

void derive_io_scales(const Graph& graph, IoScales& scales) {
  ValuesByName values = values_by_name(graph);
  auto add = [&](std::map<std::string, IntegerScale>& to, const std::string& name, ValueId v, bool output) {
    std::vector<IntegerScale> found;
    for (const ScaleNode& node : scales.nodes) {
      ValueId integers = node.makes_integers == output ? find(values, node.integers) : kNoValue;
      if (integers == kNoValue) continue;
      if (output ? moved_from(graph, v) == integers : moved_from(graph, integers) == v)
        found.push_back(node.scale);
    }
    add_scale(to, name, found);
  };
  for (ValueId v : graph.inputs) add(scales.inputs, graph.values[v].name, v, false);
  for (const Graph::Output& output : graph.outputs) add(scales.outputs, output.name, output.value, true);
}

Expected<Graph> set_io_types(const Graph& graph, IoTypes types, IoScales& scales, const std::string& file,
                             std::vector<std::string>& notes) {
  if (types == IoTypes::kModel) return graph;
  return TypeChanger(graph, scales, file, notes).run(types);
}

}  // namespace quernel
