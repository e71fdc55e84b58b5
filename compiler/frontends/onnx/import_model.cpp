#include "frontends/onnx/import_model.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "frontends/onnx/import_graph.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/read_about.h"
#include "frontends/onnx/read_model.h"
#include "frontends/shared/dim_assumptions.h"
#include "frontends/shared/import_rounds.h"
#include "frontends/shared/input_shapes.h"
#include "graph/passes/passes.h"

namespace quernel {
namespace onnx_import {
namespace {

constexpr int64_t kNewestIrVersion = 14;  // ONNX 1.23

Expected<int64_t> read_opset(const onnx::ModelProto& model, const Location& place) {
  int64_t opset = 0;
  for (const onnx::OperatorSetIdProto& import : model.opset_import())
    if (normal_domain(import.domain()).empty()) opset = import.version();
  if (opset == 0) {
    bool uses_default = std::any_of(model.graph().node().begin(), model.graph().node().end(),
                                    [](const auto& node) { return normal_domain(node.domain()).empty(); });
    if (uses_default) return invalid_input("the model imports no opset of the default domain", place);
    return kNewestOpset;
  }
  if (opset < kOldestOpset)
    return invalid_input("expected an opset of at least 1, found " + std::to_string(opset), place);
  if (opset > kNewestOpset)
    return unsupported("opset " + std::to_string(opset) + " is newer than " + std::to_string(kNewestOpset) +
                           ", the newest that is known",
                       place, "export the model at opset " + std::to_string(kNewestOpset) + " or older");
  return opset;
}

// An input that is a tensor, with what the file says of its dims.
DeclaredInput declared_input(const onnx::ValueInfoProto& input) {
  DeclaredInput declared{input.name(), input.type().tensor_type().has_shape(), {}};
  const onnx::TensorShapeProto& shape = input.type().tensor_type().shape();
  for (int i = 0; i < shape.dim_size(); ++i) {
    const auto& dim = shape.dim(i);
    DeclaredInput::OneDim& one = declared.dims.emplace_back();
    if (dim.has_dim_value() && dim.dim_value() >= 0) one.size = dim.dim_value();
    // "?" is what some exporters call every free dim.
    bool named = dim.has_dim_param() && !dim.dim_param().empty() && dim.dim_param() != "?";
    one.name = named ? dim.dim_param() : input.name() + "_dim" + std::to_string(i);
  }
  return declared;
}

Expected<TensorType> type_of(const onnx::ValueInfoProto& input, InputShapes& shapes,
                             const std::string& file_name) {
  Location place{file_name, input.name(), "input"};
  if (!input.has_type() || input.type().value_case() != onnx::TypeProto::kTensorType)
    return unsupported("expected a tensor, found input '" + input.name() + "' of another type", place,
                       "sequences, optionals, maps and sparse tensors are not supported");
  QUERNEL_TRY(DType dtype, dtype_from_onnx(input.type().tensor_type().elem_type(), place));
  QUERNEL_TRY(Shape shape, shapes.shape_of(declared_input(input)));
  return TensorType{dtype, std::move(shape)};
}

bool is_kept(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return pattern == name || fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
  });
}

// The model's inputs. Initializers may be listed among them (before IR version 4 all were): these are their
// defaults, and they are constants all the same, but for those that are kept.
struct ListedInputs {
  std::vector<const onnx::ValueInfoProto*> inputs;
  std::vector<std::string> constants;  // listed, but not kept
};
ListedInputs inputs_of(const onnx::GraphProto& graph, const std::vector<std::string>& kept = {}) {
  std::set<std::string> initializers;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  ListedInputs result;
  for (const auto& input : graph.input())
    if (initializers.count(input.name()) && !is_kept(input.name(), kept))
      result.constants.push_back(input.name());
    else
      result.inputs.push_back(&input);
  return result;
}

std::string quoted(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > kShown) text += ", … (" + std::to_string(names.size()) + " in all)";
  return text.empty() ? "none" : text;
}

Status check_kept(const onnx::GraphProto& graph, const std::vector<std::string>& patterns,
                  const Location& place) {
  std::vector<std::string> listed = inputs_of(graph).constants;
  for (const std::string& pattern : patterns)
    if (std::none_of(listed.begin(), listed.end(),
                     [&](const std::string& name) { return is_kept(name, {pattern}); }))
      return invalid_input(
          "expected the name of an initializer that the model lists as an input, found '" + pattern + "'",
          place, "those initializers: " + quoted(listed));
  return {};
}

// One attempt: fills the round.
Expected<ImportedModel> try_import(const ParsedModel& parsed, const std::string& file_name,
                                   const ImportOptions& options, ImportRound& round) {
  const std::shared_ptr<const onnx::ModelProto>& model = parsed.message;
  Location place{.file = file_name};
  ImportedModel result;
  result.producer =
      model->producer_name() + (model->producer_version().empty() ? "" : " " + model->producer_version());
  QUERNEL_TRY(result.opset, read_opset(*model, place));
  if (model->ir_version() > kNewestIrVersion)
    result.notes.push_back("the file has ONNX's IR version " + std::to_string(model->ir_version()) +
                           ", newer than " + std::to_string(kNewestIrVersion) +
                           ", the newest that is known: what only newer versions have is not seen");
  if (!model->graph().name().empty()) result.graph.name = symbol_name(model->graph().name());

  QUERNEL_CHECK(check_kept(model->graph(), options.keep_inputs, place));
  auto [inputs, constants] = inputs_of(model->graph(), options.keep_inputs);
  if (!constants.empty() && model->ir_version() >= 4)
    result.notes.push_back("initializers that the model lists as inputs are taken as constants: " +
                           quoted(constants) + " (--keep-input NAME makes one an input)");

  ErrorSink errors;
  InputShapes shapes(options, round.assumptions, file_name, constants);
  std::unordered_map<std::string, Entry> values;
  for (const auto* input : inputs) shapes.bind(declared_input(*input));
  std::map<const onnx::ValueInfoProto*, TensorType> types;
  for (const auto* input : inputs) {
    Expected<TensorType> type = type_of(*input, shapes, file_name);
    if (type)
      types.emplace(input, std::move(*type));
    else
      values[input->name()].failed = errors.report(type.take_errors());
  }
  result.graph.symbols = shapes.symbols();
  round.unranged = shapes.unranged();
  for (const auto* input : inputs) {
    auto type = types.find(input);
    if (type == types.end()) continue;
    shapes.replace_symbols(type->second);
    Location input_place{file_name, input->name(), "input"};
    if (input->name().empty()) errors.report(invalid_input("expected inputs with names", input_place));
    if (values.count(input->name()))
      errors.report(invalid_input("expected inputs of different names, found '" + input->name() + "' twice",
                                  input_place, "give each of them a name of its own"));
    if (input->name().empty() || values.count(input->name())) continue;
    Expected<ValueId> value =
        round.fixed.count(input->name())
            ? fixed_input(input->name(), type->second, options.input_values.at(input->name()), result.graph,
                          input_place)
            : result.graph.add_input(input->name(), std::move(type->second), input_place);
    if (value)
      values[input->name()].value = *value;
    else
      values[input->name()].failed = errors.report(value.take_errors());
  }
  if (!errors.reported_any())
    if (Status unused = shapes.check_unused(); !unused) return unused.take_errors();
  // Inputs that are wrong still let the operators be checked, so that everything is reported at once.
  TensorSource source{
      model, parsed.file, file_name, {}, options.max_initializer_bytes, options.external_dirs};
  GraphImport import(*model, result.opset, std::move(source), options, result.graph, errors);
  import.run(std::move(values));
  round.wanted = import.wanted_inputs();
  if (errors.reported_any()) {
    for (const GraphBuilder::UnequalDims& dims : import.unequal_dims())
      round.assumed |= round.assumptions.make_equal(dims);
    for (const LeastDim& dim : import.least_dims()) round.assumed |= round.assumptions.make_at_least(dim);
    return errors.take();
  }
  add_scale_nodes(import.scale_nodes(), result.graph, result.scales);
  derive_io_scales(result.graph, result.scales);
  // Bodies and attempts leave dead nodes behind.
  QUERNEL_TRY(result.graph, eliminate_dead_nodes(result.graph));
  for (const CustomOpDescription& op : options.custom_ops)
    if (!import.used_custom_ops().count(op.name))
      result.notes.push_back("custom op '" + op.name + "' is described, but no node of the model is one");
  std::vector<std::string> notes = import.notes();
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  for (const Graph::Output& output : result.graph.outputs)
    if (const Node* node = result.graph.def(output.value);
        node && (node->location.op == "DFT" || node->location.op == "STFT"))
      result.fourier_outputs.push_back(output.name);
  note_assumptions(round, result);
  return result;
}

Expected<ImportedModel> import_model(const ParsedModel& model, const std::string& file_name,
                                     const ImportOptions& options) {
  QUERNEL_TRY(ImportedModel imported, import_in_rounds(options, [&](ImportRound& round) {
                return try_import(model, file_name, options, round);
              }));
  imported.about = read_about(*model.message);
  if (imported.about.left_out > 0) imported.notes.push_back(note_of_left_out(imported.about));
  return imported;
}

}  // namespace
}  // namespace onnx_import

Expected<ImportedModel> import_onnx_bytes(std::span<const uint8_t> bytes, const std::string& file_name,
                                          const ImportOptions& options) {
  QUERNEL_TRY(onnx_import::ParsedModel model, onnx_import::parse_model(bytes, file_name));
  return onnx_import::import_model(model, file_name, options);
}

Expected<ImportedModel> import_onnx(const std::string& path, const ImportOptions& options) {
  QUERNEL_TRY(onnx_import::ParsedModel model, onnx_import::parse_model_file(path));
  return onnx_import::import_model(model, path, options);
}

Expected<ModelInputs> read_onnx_inputs(const std::string& path) {
  QUERNEL_TRY(onnx_import::ParsedModel model, onnx_import::parse_model_file(path));
  ModelInputs result;
  for (const auto* input : onnx_import::inputs_of(model.message->graph()).inputs)
    result.names.push_back(input->name());
  for (const auto& input : model.message->graph().input()) result.with_all.push_back(input.name());
  return result;
}

Expected<std::map<std::string, Tensor>> read_onnx_initializers(const std::string& path,
                                                               const std::vector<std::string>& names) {
  QUERNEL_TRY(onnx_import::ParsedModel model, onnx_import::parse_model_file(path));
  onnx_import::TensorSource source{model.message, model.file, path, {}, INT64_MAX};
  std::map<std::string, Tensor> values;
  for (const auto& proto : model.message->graph().initializer()) {
    if (std::find(names.begin(), names.end(), proto.name()) == names.end()) continue;
    Expected<Tensor> value = onnx_import::read_tensor(proto, source, {.file = path, .node = proto.name()});
    if (value) values.insert_or_assign(proto.name(), std::move(*value));
  }
  return values;
}

}  // namespace quernel
