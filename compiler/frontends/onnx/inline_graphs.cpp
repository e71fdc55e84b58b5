// What becomes of graphs within a graph: branches of If, bodies of loops and of SequenceMap, and functions of
// the model. Part of GraphImport.
#include <algorithm>

#include "frontends/onnx/import_graph.h"
#include "frontends/onnx/operators.h"
#include "graph/dim_values.h"
#include "graph/outline.h"

namespace quernel::onnx_import {
namespace {

constexpr int kSelectedNodes = 4;  // of a branch: up to here both are computed

}  // namespace

Status GraphImport::import_if(const onnx::NodeProto& node, Scope& scope) {
  Location place = place_of(node);
  if (node.input_size() != 1) return invalid_input("expected one input, the condition", place);
  ValueId condition = value_of(scope, node.input(0));
  build_.set_location(place);
  if (condition == kNoValue) return invalid_input("expected a condition, found it missing", place);
  if (is_collection(condition)) return invalid_input("expected a tensor as the condition", place);
  const Tensor* known = folder_.evaluate(condition);
  if (!known)
    if (std::optional<Shape> value = dim_values(graph_, condition);
        value && value->size() == 1 && (*value)[0].is_const())
      known = graph_.constant(
          build_.constant(make_tensor<uint8_t>(DType::kBool, {}, {(*value)[0].value() != 0})));
  if (known && known->count() != 1) return invalid_input("expected a condition of one element", place);
  define(scope, node,
         known ? import_branch(node, element_as_i64(*known, 0) != 0, scope)
               : import_branches(node, condition, scope));
  return {};
}

std::vector<ValueId> GraphImport::import_branch(const onnx::NodeProto& node, bool condition, Scope& scope) {
  Location place = place_of(node);
  const char* wanted = condition ? "then_branch" : "else_branch";
  const onnx::GraphProto* branch = nullptr;
  for (const onnx::AttributeProto& a : node.attribute())
    if (a.name() == wanted && a.has_g()) branch = &a.g();
  if (!branch || branch->output_size() != node.output_size())
    throw NodeFailed{errors_.report(invalid_input(
        std::string("expected a graph attribute ") + wanted + " with as many outputs as the node", place))};
  if (Status shallow = check_depth(place, scope.depth + 1); !shallow)
    throw NodeFailed{errors_.report(shallow.take_errors())};
  Scope inner{&scope, {}, scope.depth + 1};
  add_initializers(*branch, inner);
  import_nodes(branch->node(), inner);
  std::vector<ValueId> results;
  for (const onnx::ValueInfoProto& output : branch->output())
    results.push_back(result_of(inner, output.name(), place));
  return results;
}

std::vector<ValueId> GraphImport::import_branches(const onnx::NodeProto& node, ValueId condition,
                                                  Scope& scope) {
  Location place = place_of(node);
  ErrorSink::Mark before = errors_.mark();
  auto side = [&](bool which) -> std::optional<std::vector<ValueId>> {
    std::vector<ValueId> results = import_branch(node, which, scope);
    if (std::optional<Reported> why = errors_.reported_since(before)) throw NodeFailed{*why};
    if (std::any_of(results.begin(), results.end(), is_collection))
      throw NodeFailed{errors_.report(unsupported(
          "If on a computed condition gives tensors only, found a sequence or an optional", place))};
    return results;
  };
  size_t first_unequal = build_.unequal_dims().size(), least = least_dims_.size();
  auto leave = [&] {
    in_branches_.push_back({first_unequal, build_.unequal_dims().size()});
    least_dims_.resize(least);
  };
  std::string name = node.output_size() && !node.output(0).empty() ? node.output(0) + "_if" : "if";
  try {
    std::optional<std::vector<ValueId>> results = build_branch(
        build_, name, condition, [&] { return side(true); }, [&] { return side(false); }, kSelectedNodes);
    if (!results) build_.fail(internal_error("a branch without results", place));
    leave();
    return *std::move(results);
  } catch (...) {
    leave();
    // A condition that the user may fix decides the branch.
    std::set<ValueId> inputs;
    folder_.collect_inputs(condition, inputs);
    want(inputs, place);
    throw;
  }
}

std::vector<ValueId> GraphImport::import_body(const onnx::GraphProto& body,
                                              const std::vector<ValueId>& inputs, ValueId iteration,
                                              Scope& outer, const Location& place) {
  if (body.input_size() != static_cast<int>(inputs.size()))
    throw NodeFailed{errors_.report(invalid_input("expected a body with " + std::to_string(inputs.size()) +
                                                      " inputs, found " + std::to_string(body.input_size()),
                                                  place))};
  if (Status shallow = check_depth(place, outer.depth); !shallow)
    throw NodeFailed{errors_.report(shallow.take_errors())};
  ErrorSink::Mark before = errors_.mark();
  // An iteration counts as a node, so that a long loop around nothing ends, too.
  if (count_node(place)) {
    Scope inner{&outer, {}, outer.depth, true};
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = body.input(static_cast<int>(i)).name();
      if (outer.entries.count(name)) errors_.report(initializer_of_an_input(name));
      inner.entries[name] = {inputs[i], nullptr, nullptr, nullptr, {}};
    }
    iterations_.push_back(iteration);
    import_nodes(body.node(), inner);
    iterations_.pop_back();
    std::vector<ValueId> results;
    for (const onnx::ValueInfoProto& output : body.output())
      results.push_back(result_of(inner, output.name(), place));
    build_.set_location(place);
    if (!errors_.reported_since(before)) return results;
  }
  throw NodeFailed{*errors_.reported_any()};
}

bool GraphImport::attempt(const std::function<bool()>& step) {
  ErrorSink::Mark before = errors_.mark();
  size_t symbols = graph_.symbols.size(), sources = graph_.symbol_sources.size();
  size_t depth = iterations_.size();
  int64_t nodes = nodes_imported_;
  std::map<std::string, std::string> wanted = wanted_inputs_;
  Location place = build_.location();
  bool done = false;
  try {
    done = step();
  } catch (const NodeFailed&) {
  } catch (const BuilderFailed&) {
  }
  done = static_cast<bool>(build_.take_status()) && done && !errors_.reported_since(before);
  if (done) return true;
  errors_.forget_since(std::move(before));
  wanted_inputs_ = std::move(wanted);
  // What was emitted is dead, and goes when the import is done.
  graph_.symbols.resize(symbols);
  graph_.symbol_sources.resize(sources);
  iterations_.resize(depth);
  nodes_imported_ = nodes;
  build_.set_name({});
  build_.set_location(std::move(place));
  return false;
}

// The body once per element: the elements of all sequences, and tensors as they are, are its inputs.
Status GraphImport::import_sequence_map(const onnx::NodeProto& node, Scope& scope) {
  Location place = place_of(node);
  const onnx::GraphProto* body = nullptr;
  for (const onnx::AttributeProto& a : node.attribute())
    if (a.name() == "body" && a.has_g()) body = &a.g();
  if (!body || body->input_size() != node.input_size() || body->output_size() != node.output_size())
    return invalid_input("expected a graph attribute body with as many inputs and outputs as the node",
                         place);
  std::vector<ValueId> operands;
  size_t length = 0;
  for (int i = 0; i < node.input_size(); ++i) {
    operands.push_back(value_of(scope, node.input(i)));
    if (operands.back() == kNoValue)
      return invalid_input("expected input " + std::to_string(i) + ", found it missing", place);
    bool sequence = is_collection(operands.back()) && !collections_.at(operands.back()).is_optional;
    size_t count = sequence ? collections_.at(operands.back()).elements.size() : length;
    if (i == 0) length = count;
    if ((i == 0 && !sequence) || count != length || (is_collection(operands.back()) && !sequence))
      return invalid_input("expected a sequence first, and others of its length or tensors", place);
  }
  QUERNEL_CHECK(check_depth(place, scope.depth + 1));
  std::vector<Collection> results(static_cast<size_t>(node.output_size()));
  for (size_t k = 0; k < length; ++k) {
    Scope inner{&scope, {}, scope.depth + 1};
    for (int i = 0; i < node.input_size(); ++i) {
      ValueId v = operands[static_cast<size_t>(i)];
      inner.entries[body->input(i).name()] = {
          is_collection(v) ? collections_.at(v).elements[k] : v, nullptr, nullptr, nullptr, {}};
    }
    add_initializers(*body, inner);
    iterations_.push_back(build_.constant(i64_tensor({}, {static_cast<int64_t>(k)})));
    import_nodes(body->node(), inner);
    iterations_.pop_back();
    for (size_t i = 0; i < results.size(); ++i)
      results[i].elements.push_back(result_of(inner, body->output(static_cast<int>(i)).name(), place));
  }
  std::vector<ValueId> values;
  for (Collection& result : results) values.push_back(collections_.add(std::move(result)));
  define(scope, node, values);
  return {};
}

Status GraphImport::import_function(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                                    Scope& scope) {
  Location place = place_of(node);
  // A function sees its own inputs only, so its scope has no outer one.
  Scope inner{nullptr, {}, scope.depth + 1};
  QUERNEL_CHECK(check_depth(place, inner.depth));
  function_bytes_ += static_cast<int64_t>(function.ByteSizeLong());
  if (function_bytes_ > max_function_bytes_)
    return unsupported("calls of functions whose bodies have more than " +
                           std::to_string(max_function_bytes_ >> 20) + " MiB together",
                       place, "lift the limit with --allow-large");
  if (node.input_size() > function.input_size() || node.output_size() > function.output_size())
    return invalid_input("call of function '" + function.name() + "' with more inputs or outputs than it has",
                         place);
  for (int i = 0; i < function.input_size(); ++i) {
    std::string name = i < node.input_size() ? node.input(i) : "";
    // An omitted input is the empty name inside too.
    inner.entries[function.input(i)] = {value_of(scope, name), nullptr, nullptr, nullptr, {}};
  }
  import_function_body(function, node, inner);
  std::vector<ValueId> results;
  for (int i = 0; i < node.output_size(); ++i)
    results.push_back(node.output(i).empty() ? kNoValue : result_of(inner, function.output(i), place));
  define(scope, node, results);
  return {};
}

void GraphImport::import_function_body(const onnx::FunctionProto& function, const onnx::NodeProto& node,
                                       Scope& inner) {
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

}  // namespace quernel::onnx_import
