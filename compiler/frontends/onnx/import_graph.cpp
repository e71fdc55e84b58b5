#include "frontends/onnx/import_graph.h"

#include <algorithm>

#include "frontends/onnx/legacy.h"
#include "frontends/onnx/operators.h"
#include "graph/dim_values.h"
#include "graph/outline.h"

namespace quernel::onnx_import {
namespace {

constexpr int kMaxDepth = 32;           // of nested functions and branches
constexpr int64_t kMaxNodes = 1000000;  // after inlining
constexpr int kSelectedNodes = 4;       // of a branch: up to here both are computed

bool takes_collections(std::string_view op) {
  return op == "Identity" || op == "Loop" || op.find("Sequence") != op.npos || op.find("Optional") != op.npos;
}

}  // namespace

GraphImport::GraphImport(const onnx::ModelProto& model, int64_t opset, TensorSource source,
                         const ImportOptions& options, Graph& graph)
    : model_(model),
      opset_(opset),
      source_(std::move(source)),
      custom_ops_(options.custom_ops),
      names_rule_(options.duplicate_names),
      choices_(options.choices),
      graph_(graph),
      build_(graph),
      folder_(graph) {
  for (const onnx::FunctionProto& function : model.functions()) {
    auto [it, first] = functions_.try_emplace({normal_domain(function.domain()), function.name()}, &function);
    if (first || function.SerializeAsString() == it->second->SerializeAsString()) continue;
    Location place{source_.file_name, function.name(), "function"};
    if (last_counts(function.name(), false, "a function", "another of its domain", place))
      it->second = &function;
  }
}

Location GraphImport::place_of(const onnx::NodeProto& node) const {
  return {source_.file_name, node_name(node), operator_name(node)};
}

void GraphImport::report(Diagnostics errors) {
  for (Diagnostic& error : errors) errors_.push_back(std::move(error));
}

void GraphImport::want(const std::set<ValueId>& inputs, const Location& place) {
  for (ValueId v : inputs)  // not those of a body
    if (std::find(graph_.inputs.begin(), graph_.inputs.end(), v) != graph_.inputs.end())
      wanted_inputs_.try_emplace(graph_.values[v].name, "'" + place.node + "' (" + place.op + ")");
}

std::vector<std::string> GraphImport::notes() const {
  std::vector<std::string> notes = name_notes();
  notes.insert(notes.end(), output_notes_.begin(), output_notes_.end());
  return notes;
}

Diagnostics GraphImport::take_errors() {
  if (!free_dim_errors_.empty()) {
    const Diagnostic& first = free_dim_errors_.front();
    std::string names, options, ranges;
    for (const auto& [name, range] : ranged_dims_)
      if (!free_dims_.count(name)) ranges += (ranges.empty() ? "" : ", ") + range;
    std::set<std::string> all = free_dims_;
    for (const auto& [name, range] : ranged_dims_) all.insert(name);
    for (const std::string& name : all) names += (names.empty() ? "'" : ", '") + name + "'";
    for (const std::string& name : free_dims_)
      options += (options.empty() ? "--dim " : " --dim ") + name + "=N";
    std::string count = free_dim_errors_.size() == 1
                            ? ""
                            : " (and " + std::to_string(free_dim_errors_.size() - 1) + " more nodes)";
    std::string how = ranges.empty() ? " must be fixed" : " must be fixed or given a range";
    errors_.push_back(
        unsupported("free dims " + names + how + " for this node" + count + ": " + first.message, first.place,
                    "fix them with " + options + (options.empty() || ranges.empty() ? "" : ", ") + ranges));
    free_dim_errors_.clear();
  }
  return std::move(errors_);
}

std::vector<GraphBuilder::UnequalDims> GraphImport::unequal_dims() const {
  std::vector<GraphBuilder::UnequalDims> kept;
  for (size_t i = 0; i < build_.unequal_dims().size(); ++i) {
    const GraphBuilder::UnequalDims& dims = build_.unequal_dims()[i];
    bool in_branch = std::any_of(in_branches_.begin(), in_branches_.end(),
                                 [&](const auto& range) { return i >= range.first && i < range.second; });
    if (!in_branch || (!dims.a.is_const() && !dims.b.is_const())) kept.push_back(dims);
  }
  return kept;
}

// ---- scopes

GraphImport::Entry* GraphImport::find(Scope& scope, const std::string& name) {
  for (const Scope* s = &scope; s; s = s->outer)
    if (auto it = s->entries.find(name); it != s->entries.end()) return const_cast<Entry*>(&it->second);
  return nullptr;
}

std::pair<GraphImport::Scope*, bool> GraphImport::owner_of(Scope& scope, const std::string& name) {
  bool same_graph = true;
  for (Scope* s = &scope; s; s = const_cast<Scope*>(s->outer)) {
    if (s->entries.count(name)) return {s, same_graph};
    same_graph = same_graph && s->continues;
  }
  return {nullptr, false};
}

ValueId GraphImport::value_of(Scope& scope, const std::string& name) {
  Entry* entry = find(scope, name);
  if (!entry) return kNoValue;
  if (!entry->initializer) return entry->value;
  const onnx::TensorProto& proto = *std::exchange(entry->initializer, nullptr);
  Location place{source_.file_name, proto.name(), "initializer"};
  Expected<Tensor> tensor = read_tensor(proto, source_, place);
  if (!tensor) {
    report(tensor.take_errors());
    return kNoValue;
  }
  build_.set_location(place);
  build_.set_name(proto.name());
  entry->value = build_.constant(std::move(*tensor));
  if (Status status = build_.take_status(); !status) report(status.take_errors());
  return entry->value;
}

ValueId GraphImport::result_of(Scope& scope, const std::string& name, const Location& place) {
  ValueId value = value_of(scope, name);
  // Without an earlier problem to blame, the body does not produce it.
  if (value == kNoValue && errors_.empty() && free_dim_errors_.empty())
    report({invalid_input("result '" + name + "' of the function or branch is produced by none of its nodes",
                          place)});
  return value;
}

void GraphImport::define(Scope& scope, const onnx::NodeProto& node, int output, ValueId value,
                         int32_t first_new_value) {
  const std::string& name = node.output(output);
  if (name.empty() || is_dropped(node, output)) return;
  scope.entries[name] = {value, nullptr, &node};
  if (value >= first_new_value) graph_.rename(value, name);
}

void GraphImport::define_failed(Scope& scope, const onnx::NodeProto& node) {
  for (int i = 0; i < node.output_size(); ++i) define(scope, node, i, kNoValue);
}

void GraphImport::add_initializers(const onnx::GraphProto& graph, Scope& scope) {
  for (const onnx::TensorProto& tensor : graph.initializer()) add_initializer(tensor, scope);
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer())
    report({unsupported("sparse initializers are not supported",
                        Location{source_.file_name, tensor.values().name(), "initializer"},
                        "store the tensor densely")});
}

// ---- nodes

void GraphImport::run(const std::unordered_map<std::string, ValueId>& inputs) {
  Scope scope;
  for (const auto& [name, value] : inputs) scope.entries[name] = {value, nullptr};
  add_initializers(model_.graph(), scope);
  if (!errors_.empty()) return;
  import_nodes(model_.graph().node(), scope);
  add_outputs(model_.graph(), scope);
}

// An output that is listed twice has two names: those of a graph's outputs are all different.
void GraphImport::add_outputs(const onnx::GraphProto& graph, Scope& scope) {
  std::set<std::string> names;
  for (const onnx::ValueInfoProto& output : graph.output()) names.insert(output.name());
  std::set<std::string> listed;
  for (const onnx::ValueInfoProto& output : graph.output()) {
    Location place{source_.file_name, output.name(), "output"};
    if (!find(scope, output.name())) {
      if (errors_.empty())
        report({invalid_input("output '" + output.name() + "' is produced by no node", place)});
      continue;
    }
    std::string name = output.name();
    for (int k = 1; !listed.insert(name).second; ++k) {
      name = output.name() + "_" + std::to_string(k);
      while (names.count(name)) name += "_";
    }
    if (name != output.name())
      output_notes_.push_back("output '" + output.name() + "' is listed again, and is there called '" + name +
                              "'");
    ValueId value = value_of(scope, output.name());
    if (is_collection(value))
      report({unsupported("an output that is a sequence or an optional is not supported", place,
                          "give its elements as outputs")});
    else
      graph_.outputs.push_back({name, value});
  }
  if (graph.output_size() == 0)
    report({invalid_input("the model has no outputs", Location{source_.file_name})});
}

bool GraphImport::enter(const Location& place, int depth) {
  if (depth <= kMaxDepth) return true;
  report(
      {unsupported("functions, bodies and branches nested more than " + std::to_string(kMaxDepth) + " deep",
                   place, "inline functions, or nest If, Loop and Scan less deeply")});
  return false;
}

bool GraphImport::count_node(const Location& place) {
  if (++nodes_imported_ == kMaxNodes)
    report({unsupported("more than " + std::to_string(kMaxNodes) + " nodes after inlining", place)});
  return nodes_imported_ < kMaxNodes;
}

void GraphImport::import_nodes(const NodeList& nodes, Scope& scope) {
  size_t problems = errors_.size();
  std::vector<const onnx::NodeProto*> kept = settle_names(nodes, scope);
  if (errors_.size() != problems) return;
  Expected<std::vector<const onnx::NodeProto*>> order = sort_nodes(
      kept, source_.file_name, [&](const std::string& name) { return find(scope, name) != nullptr; },
      [&](const onnx::NodeProto& node, int output) { return is_dropped(node, output); });
  if (!order) return report(order.take_errors());
  for (const onnx::NodeProto* node : *order) {
    if (!count_node(place_of(*node))) return;
    import_node(*node, scope);
  }
}

bool GraphImport::check_sizes(int32_t first_new_value, const Location& place) {
  for (size_t v = static_cast<size_t>(first_new_value); v < graph_.values.size(); ++v) {
    const TensorType& type = graph_.values[v].type;
    std::vector<int64_t> known;
    for (const Dim& d : type.shape)
      if (d.is_const()) known.push_back(d.value());
    if (is_sane_shape(known)) continue;
    report({unsupported(
        "a tensor of shape " + to_string(type.shape) + " is larger than the limit of 2^40 elements", place)});
    return false;
  }
  return true;
}

Status GraphImport::check_reshapes(NodeImport& n, int32_t first_new_value) const {
  for (size_t v = static_cast<size_t>(first_new_value); v < graph_.values.size(); ++v) {
    const Node* node = graph_.def(static_cast<ValueId>(v));
    if (!node || node->op != OpKind::k_reshape) continue;
    const Shape &from = graph_.shape(node->inputs[0]), &to = graph_.shape(node->output);
    if (is_static(from) && is_static(to)) continue;
    QUERNEL_CHECK(n.require_equal(element_count(from), element_count(to),
                                  "the elements of an operand of " + to_string(from)));
  }
  return {};
}

void GraphImport::import_node(const onnx::NodeProto& node, Scope& scope) {
  Location place = place_of(node);
  auto fail = [&](Diagnostics errors) {
    report(std::move(errors));
    define_failed(scope, node);
  };
  std::set<std::string_view> attributes;
  for (const onnx::AttributeProto& a : node.attribute())
    if (!attributes.insert(a.name()).second)
      return fail({invalid_input("expected one attribute '" + a.name() + "', found two", place)});
  const CustomOpDescription* custom = find_custom_op(node);
  if (const onnx::FunctionProto* function = custom ? nullptr : find_function(node))
    return import_function(*function, node, scope);
  std::string_view domain = normal_domain(node.domain());
  if (!custom && domain.empty() && node.op_type() == "If") return import_if(node, scope);
  if (!custom && domain.empty() && node.op_type() == "SequenceMap") return import_sequence_map(node, scope);
  Operator described;
  if (custom) {
    described.name = custom->name;
    described.min_inputs = described.max_inputs = static_cast<int>(custom->inputs.size());
    used_custom_ops_.insert(custom->name);
  }
  const Operator* op = custom ? &described : find_operator(domain, node.op_type(), opset_);
  if (!op) return fail({why_unsupported(domain, node.op_type(), opset_, place)});

  build_.set_location(place);
  Expected<std::optional<onnx::NodeProto>> modern = std::optional<onnx::NodeProto>();
  if (!custom) modern = modern_attributes(node, opset_, place);
  if (!modern) return fail(modern.take_errors());
  NodeImport n(*modern ? **modern : node, opset_, build_, folder_, source_);
  n.collections = &collections_;
  n.choices = choices_;
  std::map<const onnx::GraphProto*, Scope> bodies;  // their initializers, read once
  n.inline_body = [&](const onnx::GraphProto& body, const std::vector<ValueId>& inputs, ValueId iteration) {
    auto [it, is_new] = bodies.try_emplace(&body, Scope{&scope, {}, scope.depth + 1});
    if (is_new) add_initializers(body, it->second);
    return import_body(body, inputs, iteration, it->second, place);
  };
  n.attempt = [&](const std::function<bool()>& step) { return attempt(step); };
  n.iterations = iterations_;
  bool poisoned = false;
  for (const std::string& name : node.input()) {
    n.inputs.push_back(name.empty() ? kNoValue : value_of(scope, name));
    poisoned = poisoned || (!name.empty() && n.inputs.back() == kNoValue);
  }
  build_.set_location(place);
  if (poisoned) return fail({});
  while (!n.inputs.empty() && n.inputs.back() == kNoValue) n.inputs.pop_back();
  if (op->max_inputs >= 0 && n.input_count() > op->max_inputs)
    return fail({n.invalid("expected at most " + std::to_string(op->max_inputs) + " inputs, found " +
                           std::to_string(n.input_count()))});
  // Of any number of inputs none is optional.
  for (int i = 0; i < (op->max_inputs < 0 ? std::max(op->min_inputs, n.input_count()) : op->min_inputs); ++i)
    if (!n.has(i))
      return fail({n.invalid("expected at least " + std::to_string(op->min_inputs) + " inputs, found input " +
                             std::to_string(i) + " missing")});

  if ((custom || !takes_collections(op->name)) &&
      std::any_of(n.inputs.begin(), n.inputs.end(), is_collection))
    return fail({n.refuse("expected tensors, found a sequence or an optional")});

  int32_t first_new_value = static_cast<int32_t>(graph_.values.size());
  Status status = custom ? import_custom_op(n, *custom) : align_legacy_operands(n);
  if (status && !custom) status = op->import(n);
  // What an importer left in the builder came before what it returned, and is mostly its cause.
  if (Status kept = build_.take_status(); !kept) status = std::move(kept);
  if (status) status = check_reshapes(n, first_new_value);
  if (!status) {
    want(n.wanted_inputs, place);
    bool free_operand =
        std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return !is_static(n.shape(v)); });
    least_dims_.insert(least_dims_.end(), n.least_dims.begin(), n.least_dims.end());
    bool named = !n.free_dims.empty() || !n.ranged_dims.empty();
    if (free_operand || named) {
      // An importer that says nothing of dims may have failed because of any.
      for (ValueId v : n.inputs) {
        std::vector<Symbol> symbols;
        if (!named)
          for (const Dim& dim : n.shape(v)) dim.collect_symbols(symbols);
        for (const Symbol& s : symbols) n.free_dims.insert(s.name);
      }
      free_dims_.insert(n.free_dims.begin(), n.free_dims.end());
      ranged_dims_.insert(n.ranged_dims.begin(), n.ranged_dims.end());
      free_dim_errors_.push_back(status.take_errors().front());
      return fail({});
    }
    return fail(status.take_errors());
  }
  if (!check_sizes(first_new_value, place)) return fail({});
  for (int i = 0; i < node.output_size(); ++i) define(scope, node, i, n.outputs[i], first_new_value);
}

// ---- inlining

void GraphImport::import_if(const onnx::NodeProto& node, Scope& scope) {
  Location place = place_of(node);
  auto fail = [&](Diagnostics errors) {
    report(std::move(errors));
    define_failed(scope, node);
  };
  if (node.input_size() != 1) return fail({invalid_input("expected one input, the condition", place)});
  ValueId condition = value_of(scope, node.input(0));
  if (condition == kNoValue) return fail({});
  if (is_collection(condition)) return fail({invalid_input("expected a tensor as the condition", place)});
  const Tensor* known = folder_.evaluate(condition);
  if (!known)
    if (std::optional<Shape> value = dim_values(graph_, condition);
        value && value->size() == 1 && (*value)[0].is_const())
      known = graph_.constant(
          build_.constant(make_tensor<uint8_t>(DType::kBool, {}, {(*value)[0].value() != 0})));
  if (!known) {
    std::optional<std::vector<ValueId>> results = import_branches(node, condition, scope);
    if (!results) return fail({});
    for (int i = 0; i < node.output_size(); ++i) define(scope, node, i, (*results)[static_cast<size_t>(i)]);
    return;
  }
  if (known->count() != 1) return fail({invalid_input("expected a condition of one element", place)});
  std::vector<ValueId> results = import_branch(node, element_as_i64(*known, 0) != 0, scope);
  if (results.empty()) return fail({});
  for (int i = 0; i < node.output_size(); ++i) define(scope, node, i, results[static_cast<size_t>(i)]);
}

std::vector<ValueId> GraphImport::import_branch(const onnx::NodeProto& node, bool condition, Scope& scope) {
  Location place = place_of(node);
  const char* wanted = condition ? "then_branch" : "else_branch";
  const onnx::GraphProto* branch = nullptr;
  for (const onnx::AttributeProto& a : node.attribute())
    if (a.name() == wanted && a.has_g()) branch = &a.g();
  if (!branch || branch->output_size() != node.output_size()) {
    report({invalid_input(
        std::string("expected a graph attribute ") + wanted + " with as many outputs as the node", place)});
    return {};
  }
  if (!enter(place, scope.depth + 1)) return {};
  Scope inner{&scope, {}, scope.depth + 1};
  add_initializers(*branch, inner);
  import_nodes(branch->node(), inner);
  std::vector<ValueId> results;
  for (const onnx::ValueInfoProto& output : branch->output())
    results.push_back(result_of(inner, output.name(), place));
  return results;
}

std::optional<std::vector<ValueId>> GraphImport::import_branches(const onnx::NodeProto& node,
                                                                 ValueId condition, Scope& scope) {
  Location place = place_of(node);
  size_t problems = errors_.size() + free_dim_errors_.size();
  auto side = [&](bool which) -> std::optional<std::vector<ValueId>> {
    std::vector<ValueId> results = import_branch(node, which, scope);
    if (errors_.size() + free_dim_errors_.size() != problems) return std::nullopt;
    // A value around the node that failed before, and has been reported.
    if (std::find(results.begin(), results.end(), kNoValue) != results.end()) return std::nullopt;
    if (std::any_of(results.begin(), results.end(), is_collection)) {
      report({unsupported("If on a computed condition gives tensors only, found a sequence or an optional",
                          place)});
      return std::nullopt;
    }
    return results;
  };
  build_.set_location(place);
  size_t first_unequal = build_.unequal_dims().size(), least = least_dims_.size();
  std::string name = node.output_size() && !node.output(0).empty() ? node.output(0) + "_if" : "if";
  std::optional<std::vector<ValueId>> results = build_branch(
      build_, name, condition, [&] { return side(true); }, [&] { return side(false); }, kSelectedNodes);
  in_branches_.push_back({first_unequal, build_.unequal_dims().size()});
  least_dims_.resize(least);
  if (results) return results;
  // A condition that the user may fix decides the branch.
  std::set<ValueId> inputs;
  folder_.collect_inputs(condition, inputs);
  want(inputs, place);
  if (Status kept = build_.take_status(); !kept) report(kept.take_errors());
  return std::nullopt;
}

std::optional<std::vector<ValueId>> GraphImport::import_body(const onnx::GraphProto& body,
                                                             const std::vector<ValueId>& inputs,
                                                             ValueId iteration, Scope& outer,
                                                             const Location& place) {
  if (body.input_size() != static_cast<int>(inputs.size())) {
    report({invalid_input("expected a body with " + std::to_string(inputs.size()) + " inputs, found " +
                              std::to_string(body.input_size()),
                          place)});
    return std::nullopt;
  }
  // An iteration counts as a node, so that a long loop around nothing ends, too.
  if (!enter(place, outer.depth) || !count_node(place)) return std::nullopt;
  size_t problems = errors_.size() + free_dim_errors_.size();
  Scope inner{&outer, {}, outer.depth, true};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = body.input(static_cast<int>(i)).name();
    if (outer.entries.count(name)) report({initializer_of_an_input(name)});
    inner.entries[name] = {inputs[i], nullptr};
  }
  iterations_.push_back(iteration);
  import_nodes(body.node(), inner);
  iterations_.pop_back();
  std::vector<ValueId> results;
  for (const onnx::ValueInfoProto& output : body.output())
    results.push_back(result_of(inner, output.name(), place));
  build_.set_location(place);
  bool complete = std::find(results.begin(), results.end(), kNoValue) == results.end();
  if (!complete || errors_.size() + free_dim_errors_.size() != problems) return std::nullopt;
  return results;
}

bool GraphImport::attempt(const std::function<bool()>& step) {
  size_t errors = errors_.size(), free_dim_errors = free_dim_errors_.size();
  size_t symbols = graph_.symbols.size(), sources = graph_.symbol_sources.size();
  int64_t nodes = nodes_imported_;
  std::set<std::string> free_dims = free_dims_;
  std::map<std::string, std::string> wanted = wanted_inputs_;
  std::map<std::string, std::string> ranged_dims = ranged_dims_;
  bool done = step();
  done = static_cast<bool>(build_.take_status()) && done && errors_.size() == errors &&
         free_dim_errors_.size() == free_dim_errors;
  if (done) return true;
  errors_.erase(errors_.begin() + static_cast<std::ptrdiff_t>(errors), errors_.end());
  free_dim_errors_.erase(free_dim_errors_.begin() + static_cast<std::ptrdiff_t>(free_dim_errors),
                         free_dim_errors_.end());
  free_dims_ = std::move(free_dims);
  ranged_dims_ = std::move(ranged_dims);
  wanted_inputs_ = std::move(wanted);
  // What was emitted is dead, and goes when the import is done.
  graph_.symbols.resize(symbols);
  graph_.symbol_sources.resize(sources);
  nodes_imported_ = nodes;
  return false;
}

// The body once per element: the elements of all sequences, and tensors as they are, are its inputs.
void GraphImport::import_sequence_map(const onnx::NodeProto& node, Scope& scope) {
  Location place = place_of(node);
  auto fail = [&](Diagnostics errors) {
    report(std::move(errors));
    define_failed(scope, node);
  };
  const onnx::GraphProto* body = nullptr;
  for (const onnx::AttributeProto& a : node.attribute())
    if (a.name() == "body" && a.has_g()) body = &a.g();
  if (!body || body->input_size() != node.input_size() || body->output_size() != node.output_size())
    return fail({invalid_input("expected a graph attribute body with as many inputs and outputs as the node",
                               place)});
  std::vector<ValueId> operands;
  size_t length = 0;
  for (int i = 0; i < node.input_size(); ++i) {
    operands.push_back(value_of(scope, node.input(i)));
    if (operands.back() == kNoValue) return fail({});
    bool sequence = is_collection(operands.back()) && !collections_.at(operands.back()).is_optional;
    size_t count = sequence ? collections_.at(operands.back()).elements.size() : length;
    if (i == 0) length = count;
    if ((i == 0 && !sequence) || count != length || (is_collection(operands.back()) && !sequence))
      return fail({invalid_input("expected a sequence first, and others of its length or tensors", place)});
  }
  if (!enter(place, scope.depth + 1)) return fail({});
  std::vector<Collection> results(static_cast<size_t>(node.output_size()));
  for (size_t k = 0; k < length; ++k) {
    Scope inner{&scope, {}, scope.depth + 1};
    for (int i = 0; i < node.input_size(); ++i) {
      ValueId v = operands[static_cast<size_t>(i)];
      inner.entries[body->input(i).name()] = {is_collection(v) ? collections_.at(v).elements[k] : v, nullptr};
    }
    add_initializers(*body, inner);
    iterations_.push_back(build_.constant(i64_tensor({}, {static_cast<int64_t>(k)})));
    import_nodes(body->node(), inner);
    iterations_.pop_back();
    for (size_t i = 0; i < results.size(); ++i) {
      ValueId v = result_of(inner, body->output(static_cast<int>(i)).name(), place);
      if (v == kNoValue) return fail({});
      results[i].elements.push_back(v);
    }
  }
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty())
      define(scope, node, i, collections_.add(std::move(results[static_cast<size_t>(i)])));
}

const CustomOpDescription* GraphImport::find_custom_op(const onnx::NodeProto& node) const {
  if (custom_ops_.empty()) return nullptr;
  std::string name = custom_op_name(normal_domain(node.domain()), node.op_type());
  for (const CustomOpDescription& op : custom_ops_)
    if (op.name == name) return &op;
  return nullptr;
}

const onnx::FunctionProto* GraphImport::find_function(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  auto it = functions_.find({normal_domain(node.domain()), node.op_type()});
  return it == functions_.end() ? nullptr : it->second;
}

void GraphImport::import_function(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                                  Scope& scope) {
  Location place = place_of(node);
  // A function sees its own inputs only, so its scope has no outer one.
  Scope inner{nullptr, {}, scope.depth + 1};
  bool fits = enter(place, inner.depth);
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size()) {
    report({invalid_input(
        "call of function '" + function.name() + "' with more inputs or outputs than it has", place)});
    fits = false;
  }
  if (fits) {
    for (int i = 0; i < function.input_size(); ++i) {
      std::string name = i < node.input_size() ? node.input(i) : "";
      // An omitted input is the empty name inside too.
      inner.entries[function.input(i)] = {name.empty() ? kNoValue : value_of(scope, name), nullptr};
    }
    // Tensors of the body's attributes share its memory, so it becomes their owner.
    auto body = std::make_shared<NodeList>();
    for (const onnx::NodeProto& inner_node : function.node()) {
      onnx::NodeProto& copy = *body->Add();
      copy = inner_node;
      copy.set_name(node_name(node) + "/" + node_name(inner_node));
      for (int i = 0; i < copy.input_size(); ++i)
        for (int k = 0; k < function.input_size(); ++k)
          if (copy.input(i) == function.input(k) && (k >= node.input_size() || node.input(k).empty()))
            copy.set_input(i, "");
      // An attribute that refers to one of the call's takes its value, or vanishes when the call does not
      // give it.
      for (int i = copy.attribute_size() - 1; i >= 0; --i) {
        onnx::AttributeProto& attribute = *copy.mutable_attribute(i);
        if (attribute.ref_attr_name().empty()) continue;
        std::string name = attribute.name(), wanted = attribute.ref_attr_name();
        auto given = std::find_if(node.attribute().begin(), node.attribute().end(),
                                  [&](const auto& a) { return a.name() == wanted; });
        if (given == node.attribute().end()) {
          copy.mutable_attribute()->DeleteSubrange(i, 1);
        } else {
          attribute = *given;
          attribute.set_name(name);
        }
      }
    }
    int64_t function_opset = opset_;
    for (const auto& import : function.opset_import())
      if (normal_domain(import.domain()).empty()) function_opset = import.version();
    std::shared_ptr<const void> outer_owner = std::exchange(source_.owner, body);
    int64_t outer_opset = std::exchange(opset_, function_opset);
    import_nodes(*body, inner);
    source_.owner = std::move(outer_owner);
    opset_ = outer_opset;
  }
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty())
      define(scope, node, i, fits ? result_of(inner, function.output(i), place) : kNoValue);
}

}  // namespace quernel::onnx_import
