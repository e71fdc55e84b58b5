#include "frontends/onnx/import_graph.h"

#include <algorithm>

#include "frontends/onnx/legacy.h"
#include "frontends/onnx/operators.h"
#include "frontends/shared/check_node.h"
#include "graph/outline.h"

namespace quernel::onnx_import {
namespace {

constexpr int kMaxDepth = 32;          // of nested functions and branches
constexpr int64_t kMaxNodes = 100000;  // after inlining, and kNodesPerNode for each of the file's
constexpr int64_t kNodesPerNode = 4;
constexpr int64_t kMaxTries = 4;  // times as many nodes, with those that were imported in vain
constexpr int64_t kMaxFunctionBytes = int64_t{256} << 20;  // of functions' bodies that calls copy

bool takes_collections(std::string_view op) {
  return op == "Identity" || op == "Loop" || op.find("Sequence") != op.npos || op.find("Optional") != op.npos;
}

int64_t node_count(const onnx::GraphProto& graph) {
  int64_t count = graph.node_size();
  for (const onnx::NodeProto& node : graph.node())
    for (const onnx::AttributeProto& a : node.attribute())
      if (a.has_g()) count += node_count(a.g());
  return count;
}

}  // namespace

GraphImport::GraphImport(const onnx::ModelProto& model, int64_t opset, TensorSource source,
                         const ImportOptions& options, Graph& graph, ErrorSink& errors)
    : model_(model),
      opset_(opset),
      source_(std::move(source)),
      custom_ops_(options.custom_ops),
      names_rule_(options.duplicate_names),
      choices_(options.choices),
      activations_(options.activations),
      graph_(graph),
      build_(graph),
      folder_(graph),
      errors_(errors) {
  build_.on_failure([] { throw BuilderFailed(); });
  if (!options.allow_large) {
    max_nodes_ = kMaxNodes + kNodesPerNode * node_count(model.graph());
    max_function_bytes_ = kMaxFunctionBytes;
  }
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

Entry* GraphImport::find(Scope& scope, const std::string& name) {
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
  Entry* entry = name.empty() ? nullptr : find(scope, name);
  if (!entry) return kNoValue;
  if (entry->failed) throw NodeFailed{*entry->failed};
  if (!entry->initializer) return entry->value;
  const onnx::TensorProto& proto = *std::exchange(entry->initializer, nullptr);
  Location place{source_.file_name, proto.name(), "initializer"};
  Expected<Tensor> tensor = read_tensor(proto, source_, place);
  if (!tensor) {
    entry->failed = errors_.report(tensor.take_errors());
    throw NodeFailed{*entry->failed};
  }
  build_.set_location(place);
  build_.set_name(proto.name());
  return entry->value = build_.constant(std::move(*tensor));
}

ValueId GraphImport::result_of(Scope& scope, const std::string& name, const Location& place) {
  ValueId value = value_of(scope, name);
  if (value != kNoValue) return value;
  // Without an earlier problem to blame, the body does not produce it.
  if (std::optional<Reported> why = errors_.reported_any()) throw NodeFailed{*why};
  throw NodeFailed{errors_.report(invalid_input(
      "result '" + name + "' of the function or branch is produced by none of its nodes", place))};
}

void GraphImport::define(Scope& scope, const onnx::NodeProto& node, const std::vector<ValueId>& values,
                         int32_t first_new_value) {
  for (int i = 0; i < node.output_size(); ++i) {
    const std::string& name = node.output(i);
    if (name.empty() || is_dropped(node, i)) continue;
    ValueId value = values[static_cast<size_t>(i)];
    scope.entries[name] = {value, nullptr, &node, nullptr, {}};
    if (value >= first_new_value) graph_.rename(value, name);
  }
}

void GraphImport::add_initializers(const onnx::GraphProto& graph, Scope& scope) {
  for (const onnx::TensorProto& tensor : graph.initializer()) add_initializer(tensor, scope);
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer())
    errors_.report(unsupported("sparse initializers are not supported",
                               Location{source_.file_name, tensor.values().name(), "initializer"},
                               "store the tensor densely"));
}

// ---- nodes

void GraphImport::run(std::unordered_map<std::string, Entry> inputs) {
  ErrorSink::Mark before = errors_.mark();
  Scope scope;
  scope.entries = std::move(inputs);
  add_initializers(model_.graph(), scope);
  if (errors_.reported_since(before)) return;
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
    std::string name = output.name();
    for (int k = 1; !listed.insert(name).second; ++k) {
      name = output.name() + "_" + std::to_string(k);
      while (names.count(name)) name += "_";
    }
    if (name != output.name())
      output_notes_.push_back("output '" + output.name() + "' is listed again, and is there called '" + name +
                              "'");
    try {
      ValueId value = value_of(scope, output.name());
      if (is_collection(value))
        errors_.report(unsupported("an output that is a sequence or an optional is not supported", place,
                                   "give its elements as outputs"));
      else if (value != kNoValue)
        graph_.outputs.push_back({name, value});
      else if (!errors_.reported_any())
        errors_.report(invalid_input("output '" + output.name() + "' is produced by no node", place));
    } catch (const NodeFailed&) {  // and reported
    }
  }
  if (graph.output_size() == 0)
    errors_.report(invalid_input("the model has no outputs", Location{source_.file_name}));
}

Status GraphImport::check_depth(const Location& place, int depth) {
  if (depth <= kMaxDepth) return {};
  return unsupported("functions, bodies and branches nested more than " + std::to_string(kMaxDepth) + " deep",
                     place, "inline functions, or nest If, Loop and Scan less deeply");
}

bool GraphImport::count_node(const Location& place) {
  ++nodes_imported_;
  ++nodes_tried_;
  if (nodes_imported_ < max_nodes_ && nodes_tried_ / kMaxTries < max_nodes_) return true;
  errors_.report(unsupported(
      "more than " + std::to_string(max_nodes_) + " nodes after loops, branches and functions are inlined",
      place, "lift the limit with --allow-large"));
  return false;
}

void GraphImport::import_nodes(const NodeList& nodes, Scope& scope) {
  ErrorSink::Mark before = errors_.mark();
  std::vector<const onnx::NodeProto*> kept = settle_names(nodes, scope);
  if (errors_.reported_since(before)) return;
  Expected<std::vector<const onnx::NodeProto*>> order = sort_nodes(
      kept, source_.file_name, [&](const std::string& name) { return find(scope, name) != nullptr; },
      [&](const onnx::NodeProto& node, int output) { return is_dropped(node, output); });
  if (!order) {
    errors_.report(order.take_errors());
    return;
  }
  for (const onnx::NodeProto* node : *order) {
    if (!count_node(place_of(*node))) return;
    import_node(*node, scope);
  }
}

void GraphImport::import_node(const onnx::NodeProto& node, Scope& scope) {
  std::optional<Reported> why;
  try {
    if (Status status = import_any(node, scope); !status) why = errors_.report(status.take_errors());
  } catch (const NodeFailed& failed) {
    why = failed.why;
  } catch (const BuilderFailed&) {
    why = errors_.report(build_.take_status().take_errors());
  }
  if (!why) return;
  for (int i = 0; i < node.output_size(); ++i)
    if (!node.output(i).empty() && !is_dropped(node, i))
      scope.entries[node.output(i)] = {kNoValue, nullptr, &node, nullptr, why};
}

Status GraphImport::import_any(const onnx::NodeProto& node, Scope& scope) {
  Location place = place_of(node);
  std::set<std::string_view> attributes;
  for (const onnx::AttributeProto& a : node.attribute())
    if (!attributes.insert(a.name()).second)
      return invalid_input("expected one attribute '" + a.name() + "', found two", place);
  const CustomOpDescription* custom = find_custom_op(node);
  if (const onnx::FunctionProto* function = custom ? nullptr : find_function(node))
    return import_function(*function, node, scope);
  std::string_view domain = normal_domain(node.domain());
  build_.set_location(place);
  if (!custom && domain.empty() && node.op_type() == "If") return import_if(node, scope);
  if (!custom && domain.empty() && node.op_type() == "SequenceMap") return import_sequence_map(node, scope);
  if (custom) {
    Operator described;
    described.name = custom->name;
    described.min_inputs = described.max_inputs = static_cast<int>(custom->inputs.size());
    used_custom_ops_.insert(custom->name);
    return import_operator(node, node, described, custom, scope);
  }
  const Operator* op = find_operator(domain, node.op_type(), opset_);
  if (!op) return why_unsupported(domain, node.op_type(), opset_, place);
  QUERNEL_TRY(std::optional<onnx::NodeProto> modern, modern_attributes(node, opset_, place));
  return import_operator(modern ? *modern : node, node, *op, nullptr, scope);
}

Status GraphImport::import_operator(const onnx::NodeProto& node, const onnx::NodeProto& original,
                                    const Operator& op, const CustomOpDescription* custom, Scope& scope) {
  Location place = place_of(node);
  NodeImport n(node, opset_, build_, folder_, source_);
  n.collections = &collections_;
  n.choices = choices_;
  n.activations = activations_;
  std::map<const onnx::GraphProto*, Scope> bodies;  // their initializers, read once
  n.inline_body = [&](const onnx::GraphProto& body, const std::vector<ValueId>& inputs, ValueId iteration) {
    auto [it, is_new] = bodies.try_emplace(&body, Scope{&scope, {}, scope.depth + 1});
    ErrorSink::Mark before = errors_.mark();
    if (is_new) add_initializers(body, it->second);
    if (std::optional<Reported> why = errors_.reported_since(before)) {
      bodies.erase(it);  // to be reported again where this attempt is forgotten
      throw NodeFailed{*why};
    }
    return import_body(body, inputs, iteration, it->second, place);
  };
  n.attempt = [&](const std::function<bool()>& step) { return attempt(step); };
  n.nodes_imported = &nodes_imported_;
  n.long_bodies = &long_bodies_;
  n.iterations = iterations_;
  for (const std::string& name : node.input()) n.inputs.push_back(value_of(scope, name));
  build_.set_location(place);
  while (!n.inputs.empty() && n.inputs.back() == kNoValue) n.inputs.pop_back();
  if (op.max_inputs >= 0 && n.input_count() > op.max_inputs)
    return n.invalid("expected at most " + std::to_string(op.max_inputs) + " inputs, found " +
                     std::to_string(n.input_count()));
  // Of any number of inputs none is optional.
  for (int i = 0; i < (op.max_inputs < 0 ? std::max(op.min_inputs, n.input_count()) : op.min_inputs); ++i)
    if (!n.has(i))
      return n.invalid("expected at least " + std::to_string(op.min_inputs) + " inputs, found input " +
                       std::to_string(i) + " missing");
  if ((custom || !takes_collections(op.name)) && std::any_of(n.inputs.begin(), n.inputs.end(), is_collection))
    return n.refuse("expected tensors, found a sequence or an optional");

  int32_t first_new_value = static_cast<int32_t>(graph_.values.size());
  Status status;
  try {
    status = custom ? import_custom_op(n, *custom) : align_legacy_operands(n);
    if (status && !custom) status = op.import(n);
  } catch (const BuilderFailed&) {
    status = build_.take_status();
  }
  if (status) status = check_reshapes(n, first_new_value);
  if (!status) {
    want(n.wanted_inputs, place);
    least_dims_.insert(least_dims_.end(), n.least_dims.begin(), n.least_dims.end());
    return why_failed(n, std::move(status), errors_);
  }
  QUERNEL_CHECK(check_sizes(graph_, first_new_value, place));
  for (int i = 0; i < node.output_size(); ++i)
    if (n.wants_output(i) && n.outputs[static_cast<size_t>(i)] == kNoValue)
      return internal_error("the importer gave output " + std::to_string(i) + " no value", place);
  define(scope, original, n.outputs, first_new_value);
  if (!custom) keep_scale(n);
  return {};
}

void GraphImport::keep_scale(NodeImport& n) {
  bool quantizes = n.proto.op_type() == "QuantizeLinear";
  if (!quantizes && n.proto.op_type() != "DequantizeLinear") return;
  if (n.outputs.empty() || n.outputs[0] == kNoValue) return;
  ValueId real = quantizes ? n.in(0) : n.outputs[0], integers = quantizes ? n.outputs[0] : n.in(0);
  if (n.dtype(real) != DType::kF32 || is_float(n.dtype(integers))) return;
  const Tensor *scale = n.constant(n.in(1)), *zero = n.constant(n.in(2));
  bool one = scale && scale->dtype == DType::kF32 && scale->count() == 1 &&
             (!n.has(2) || (zero && zero->count() == 1));
  if (!one) return;
  IntegerScale q{static_cast<float>(element_as_f64(*scale, 0)), n.has(2) ? element_as_i64(*zero, 0) : 0};
  scale_nodes_.push_back({real, integers, quantizes, q});
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

}  // namespace quernel::onnx_import
