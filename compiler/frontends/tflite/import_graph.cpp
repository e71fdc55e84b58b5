#include "frontends/tflite/import_graph.h"

#include <algorithm>
#include <utility>

#include "frontends/shared/check_node.h"
#include "frontends/tflite/custom_op.h"
#include "frontends/tflite/operators.h"

namespace quernel::tflite_import {
namespace {

constexpr int kMaxDepth = 32;          // of nested subgraphs
constexpr int64_t kMaxNodes = 100000;  // after inlining, besides those of the file

// The type that the file declares: what a variable has before it is read.
Expected<TensorType> declared_type(const tflite::Tensor& tensor, const Location& place) {
  QUERNEL_TRY(DType dtype, dtype_of(tensor.type(), place));
  TensorType type{dtype, {}};
  for (int32_t d : elements(tensor.shape())) type.shape.push_back(std::max(d, 0));
  return type;
}

std::string variable_name(const tflite::Tensor& tensor, int32_t number) {
  std::string name = text(tensor.name());
  return name.empty() ? "variable_" + std::to_string(number) : name;
}

}  // namespace

GraphImport::GraphImport(const ModelFile& file, const ImportOptions& options, Graph& graph, ErrorSink& errors)
    : file_(file),
      graph_(graph),
      build_(graph),
      folder_(graph),
      errors_(errors),
      variables_(graph),
      custom_ops_(options.custom_ops) {
  build_.on_failure([] { throw BuilderFailed(); });
  if (options.allow_large) return;
  max_nodes_ = kMaxNodes;
  for (size_t i = 0; i < file.subgraph_count(); ++i)
    if (const auto* operators = file.subgraph(i).operators()) max_nodes_ += operators->size();
}

Location GraphImport::place_of(const tflite::Operator& node, const Scope& scope) const {
  std::vector<int32_t> results = elements(node.outputs());
  std::string name = results.empty() ? "" : text(scope.subgraph.tensors()->Get(results[0])->name());
  return {file_.name, name, operator_name(file_, node)};
}

ValueId GraphImport::value_of(Scope& scope, int32_t tensor, const Location& place) {
  Entry& entry = scope.tensors[static_cast<size_t>(tensor)];
  if (entry.failed) throw NodeFailed{*entry.failed};
  if (entry.value != kNoValue) return entry.value;
  const tflite::Tensor& description = *scope.subgraph.tensors()->Get(static_cast<uint32_t>(tensor));
  std::string name = text(description.name());
  Location constant_place{file_.name, name, "constant"};
  if (!has_data(file_, description) && description.is_variable()) {
    Expected<TensorType> type = declared_type(description, place);
    if (type) return entry.value = variables_.read(variable_name(description, tensor), *type, place);
    entry.failed = errors_.report(type.take_errors());
    throw NodeFailed{*entry.failed};
  }
  Expected<Tensor> value =
      has_data(file_, description)
          ? read_tensor(file_, description, constant_place)
          : invalid_input("operand '" + name + "' is computed by no earlier operator, and has no data",
                          place);
  if (!value) {
    entry.failed = errors_.report(value.take_errors());
    throw NodeFailed{*entry.failed};
  }
  build_.set_location(constant_place);
  build_.set_name(name);
  return entry.value = build_.constant(std::move(*value));
}

void GraphImport::run(std::vector<Entry> tensors, const std::vector<std::string>& output_names) {
  Scope scope{file_.entry_subgraph(), std::move(tensors), 0};
  import_nodes(scope);
  std::vector<int32_t> outputs = elements(scope.subgraph.outputs());
  if (outputs.empty()) errors_.report(invalid_input("the model has no outputs", Location{file_.name}));
  for (size_t i = 0; i < outputs.size(); ++i) try {
      Location place{file_.name, output_names[i], "output"};
      const tflite::Tensor& tensor = *scope.subgraph.tensors()->Get(static_cast<uint32_t>(outputs[i]));
      if (is_complex(tensor)) throw NodeFailed{errors_.report(dtype_of(tensor.type(), place).take_errors())};
      ValueId value = value_of(scope, outputs[i], place);
      graph_.outputs.push_back({output_names[i], value});
    } catch (const NodeFailed&) {  // and reported
    }
  if (!errors_.reported_any())
    if (Status kept = variables_.finish(file_.name); !kept) errors_.report(kept.take_errors());
}

void GraphImport::import_nodes(Scope& scope) {
  if (!scope.subgraph.operators()) return;
  for (const tflite::Operator* node : *scope.subgraph.operators()) {
    if (++nodes_imported_ > max_nodes_) {
      if (nodes_imported_ == max_nodes_ + 1)
        errors_.report(
            unsupported("more than " + std::to_string(max_nodes_) + " operators after subgraphs are inlined",
                        place_of(*node, scope), "lift the limit with --allow-large"));
      return;
    }
    import_node(*node, scope);
  }
}

void GraphImport::import_node(const tflite::Operator& node, Scope& scope) {
  Location place = place_of(node, scope);
  std::optional<Reported> why;
  try {
    if (Status status = import_operator(node, scope, place); !status)
      why = errors_.report(status.take_errors());
  } catch (const NodeFailed& failed) {
    why = failed.why;
  } catch (const BuilderFailed&) {
    why = errors_.report(build_.take_status().take_errors());
  }
  if (!why) return;
  for (int32_t tensor : elements(node.outputs())) scope.tensors[static_cast<size_t>(tensor)].failed = why;
}

const CustomOpDescription* GraphImport::find_custom_op(const std::string& name) {
  for (const CustomOpDescription& op : custom_ops_) {
    if (op.name != name) continue;
    used_custom_ops_.insert(name);
    return &op;
  }
  return nullptr;
}

Status GraphImport::check_complex(const NodeImport& n) const {
  using Op = tflite::BuiltinOperator;
  bool takes = false, gives = false;
  for (int i = 0; i < n.input_count(); ++i) {
    if (!n.is_complex(i)) continue;
    takes = true;
    // A subgraph's parameter may be declared otherwise than the value that it gets.
    const Shape& dims = n.shape(n.in(i));
    if (n.dtype(n.in(i)) != DType::kF32 || dims.empty() || !(dims.back() == Dim(2)))
      return n.invalid("expected a complex operand " + std::to_string(i) + ", found real values");
  }
  for (int i = 0; i < n.output_count(); ++i) gives |= is_complex(n.out_tensor(i));
  if (!takes && !gives && n.kind != Op::RFFT2D) return {};
  bool makes = n.kind == Op::RFFT2D, keeps = n.kind == Op::RESHAPE,
       ends = n.kind == Op::REAL || n.kind == Op::IMAG || n.kind == Op::COMPLEX_ABS;
  if ((makes && gives && !takes) || (keeps && gives && takes) || (ends && takes && !gives)) return {};
  return n.refuse("complex tensors are not supported by this operator",
                  "take their real and imaginary parts (REAL, IMAG) before it");
}

Status GraphImport::import_operator(const tflite::Operator& node, Scope& scope, const Location& place) {
  tflite::BuiltinOperator kind = operator_of(file_, node);
  const CustomOpDescription* described =
      kind == tflite::BuiltinOperator::CUSTOM ? find_custom_op(place.op) : nullptr;
  const Operator* op = find_operator(kind, place.op);
  QUERNEL_TRY(bool done, import_variable_operator(node, scope, place));
  if (done) return {};
  if (!op && !described) return why_unsupported(kind, place.op, place);
  int min_inputs = described ? static_cast<int>(described->inputs.size()) : op->min_inputs;
  int max_inputs = described ? min_inputs : op->max_inputs;
  NodeImport n(file_, scope.subgraph, node, build_, folder_);
  n.assign_variable = [&](int32_t tensor, ValueId value) {
    const tflite::Tensor& description = *scope.subgraph.tensors()->Get(static_cast<uint32_t>(tensor));
    scope.tensors[static_cast<size_t>(tensor)].value = value;
    variables_.write(variable_name(description, tensor), value);
  };
  n.value_of = [&](int32_t tensor) { return value_of(scope, tensor, place); };
  n.note = [&](const std::string& text) {
    notes_.push_back("node '" + place.node + "' (" + place.op + "): " + text);
  };
  n.inline_subgraph = [&](int64_t number, const std::vector<ValueId>& inputs) {
    return import_subgraph(number, inputs, scope, place);
  };
  for (int32_t tensor : elements(node.inputs()))
    n.inputs.push_back(tensor < 0 ? kNoValue : value_of(scope, tensor, place));
  build_.set_location(place);
  QUERNEL_CHECK(check_complex(n));
  while (!n.inputs.empty() && n.inputs.back() == kNoValue) n.inputs.pop_back();
  if (max_inputs >= 0 && n.input_count() > max_inputs)
    return n.invalid("expected at most " + std::to_string(max_inputs) + " inputs, found " +
                     std::to_string(n.input_count()));
  // Of operators on any number of inputs, all are there.
  for (int i = 0; i < (max_inputs < 0 ? std::max(min_inputs, n.input_count()) : min_inputs); ++i)
    if (!n.has(i))
      return n.invalid("expected at least " + std::to_string(min_inputs) + " inputs, found input " +
                       std::to_string(i) + " missing");
  QUERNEL_CHECK(n.read_quantization());
  int32_t first_new_value = static_cast<int32_t>(graph_.values.size());
  Status status;
  try {
    status = described ? import_custom_op(n, *described) : op->import(n);
  } catch (const BuilderFailed&) {
    status = build_.take_status();
  }
  if (status) status = check_reshapes(n, first_new_value);
  if (!status) {
    for (ValueId v : n.wanted_inputs)
      wanted_inputs_.try_emplace(graph_.values[static_cast<size_t>(v)].name,
                                 "'" + place.node + "' (" + place.op + ")");
    least_dims_.insert(least_dims_.end(), n.least_dims.begin(), n.least_dims.end());
    return why_failed(n, std::move(status), errors_);
  }
  QUERNEL_CHECK(check_sizes(graph_, first_new_value, place));
  std::vector<int32_t> results = elements(node.outputs());
  for (size_t i = 0; i < results.size(); ++i) {
    ValueId value = n.outputs[i];
    scope.tensors[static_cast<size_t>(results[i])] = {value, {}, {}};
    if (value >= first_new_value && !n.output_names[i].empty()) graph_.rename(value, n.output_names[i]);
  }
  keep_scale(n);
  return {};
}

void GraphImport::keep_scale(const NodeImport& n) {
  bool quantizes = n.kind == tflite::BuiltinOperator::QUANTIZE;
  if (!quantizes && n.kind != tflite::BuiltinOperator::DEQUANTIZE) return;
  ValueId real = quantizes ? n.in(0) : n.outputs[0], integers = quantizes ? n.outputs[0] : n.in(0);
  const Quantization& q = quantizes ? n.out_quantization(0) : n.in_quantization(0);
  if (n.dtype(real) != DType::kF32 || !q.is_per_tensor()) return;
  scale_nodes_.push_back({real, integers, quantizes, {q.scale(), q.zero()}});
}

Expected<bool> GraphImport::import_variable_operator(const tflite::Operator& node, Scope& scope,
                                                     const Location& place) {
  using Op = tflite::BuiltinOperator;
  Op kind = operator_of(file_, node);
  if (kind != Op::VAR_HANDLE && kind != Op::READ_VARIABLE && kind != Op::ASSIGN_VARIABLE &&
      kind != Op::CALL_ONCE)
    return false;
  build_.set_location(place);
  NodeImport n(file_, scope.subgraph, node, build_, folder_);
  std::vector<int32_t> operands = elements(node.inputs()), results = elements(node.outputs());
  auto variable_of = [&](size_t i) {
    return i < operands.size() && operands[i] >= 0 ? scope.tensors[static_cast<size_t>(operands[i])].variable
                                                   : "";
  };
  if (kind == Op::CALL_ONCE) {
    QUERNEL_CHECK(
        initialize_variables(n.options<tflite::CallOnceOptions>().init_subgraph_index(), scope, place));
    return true;
  }
  if (kind == Op::VAR_HANDLE) {
    const auto& options = n.options<tflite::VarHandleOptions>();
    std::string name =
        text(options.container()) + (options.container() ? "/" : "") + text(options.shared_name());
    if (results.size() != 1) return n.invalid("expected one result of a variable's handle");
    scope.tensors[static_cast<size_t>(results[0])].variable = name.empty() ? "variable" : name;
    return true;
  }
  if (variable_of(0).empty())
    return n.refuse("expected a handle of a variable of the same subgraph, found another operand",
                    "convert the model with variables as inputs and outputs");
  if (kind == Op::READ_VARIABLE) {
    if (results.size() != 1) return n.invalid("expected one result of a variable's handle");
    QUERNEL_TRY(TensorType type, declared_type(n.out_tensor(0), place));
    scope.tensors[static_cast<size_t>(results[0])].value = variables_.read(variable_of(0), type, place);
    return true;
  }
  if (operands.size() != 2 || operands[1] < 0) return n.invalid("expected a handle and a value");
  ValueId value = value_of(scope, operands[1], place);
  if (!initializes_) {
    variables_.write(variable_of(0), value);
    return true;
  }
  const Tensor* known = folder_.evaluate(value);
  if (!known)
    return n.refuse("expected a first value that is known at compile time, found a computed one",
                    "convert the model with variables as inputs and outputs");
  variables_.set_initial(variable_of(0), *known);
  return true;
}

Status GraphImport::initialize_variables(int64_t subgraph, const Scope& outer, const Location& place) {
  bool before = std::exchange(initializes_, true);
  try {
    import_subgraph(subgraph, {}, outer, place);
  } catch (...) {
    initializes_ = before;
    throw;
  }
  initializes_ = before;
  return {};
}

std::vector<ValueId> GraphImport::import_subgraph(int64_t number, const std::vector<ValueId>& inputs,
                                                  const Scope& outer, const Location& place) {
  // A subgraph that has failed is not tried again, so that a file with many calls of it gives one diagnostic.
  if (auto it = failed_subgraphs_.find(number); it != failed_subgraphs_.end()) throw NodeFailed{it->second};
  auto fail = [&](Diagnostic error) {
    Reported why = errors_.report(std::move(error));
    failed_subgraphs_.emplace(number, why);
    throw NodeFailed{why};
  };
  if (number < 0 || number >= static_cast<int64_t>(file_.subgraph_count()))
    fail(invalid_input("expected the number of a subgraph, found " + std::to_string(number), place));
  if (outer.depth + 1 > kMaxDepth)
    fail(unsupported("subgraphs nested more than " + std::to_string(kMaxDepth) + " deep", place,
                     "convert the model with less nesting"));
  const tflite::SubGraph& subgraph = file_.subgraph(static_cast<size_t>(number));
  std::vector<int32_t> parameters = elements(subgraph.inputs());
  if (parameters.size() != inputs.size())
    fail(invalid_input("expected " + std::to_string(parameters.size()) + " operands for subgraph " +
                           std::to_string(number) + ", found " + std::to_string(inputs.size()),
                       place));
  Scope scope{subgraph, {}, outer.depth + 1};
  scope.tensors.resize(subgraph.tensors() ? subgraph.tensors()->size() : 0);
  for (size_t i = 0; i < inputs.size(); ++i)
    scope.tensors[static_cast<size_t>(parameters[i])].value = inputs[i];
  ErrorSink::Mark before = errors_.mark();
  import_nodes(scope);
  if (std::optional<Reported> why = errors_.reported_since(before)) {
    failed_subgraphs_.emplace(number, *why);
    throw NodeFailed{*why};
  }
  std::vector<ValueId> results;
  for (int32_t tensor : elements(subgraph.outputs())) results.push_back(value_of(scope, tensor, place));
  build_.set_location(place);
  return results;
}

}  // namespace quernel::tflite_import
