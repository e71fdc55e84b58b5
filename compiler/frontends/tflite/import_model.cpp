#include "frontends/tflite/import_model.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "frontends/shared/import_rounds.h"
#include "frontends/shared/input_shapes.h"
#include "frontends/shared/map_file.h"
#include "frontends/tflite/import_graph.h"
#include "frontends/tflite/read_about.h"
#include "frontends/tflite/signatures.h"
#include "graph/passes/passes.h"
#include "support/file.h"

namespace quernel {
namespace tflite_import {
namespace {

// Names of inputs or outputs: those of their tensors, made different where the file has one twice or none.
std::vector<std::string> names_of(const tflite::SubGraph& subgraph,
                                  const flatbuffers::Vector<int32_t>* tensors, const std::string& role) {
  std::vector<std::string> names;
  std::unordered_set<std::string> taken;
  for (int32_t tensor : elements(tensors)) {
    std::string name = text(subgraph.tensors()->Get(static_cast<uint32_t>(tensor))->name());
    if (name.empty()) name = role + "_" + std::to_string(names.size());
    std::string unique = name;
    for (int k = 1; !taken.insert(unique).second; ++k) unique = name + "_" + std::to_string(k);
    names.push_back(unique);
  }
  return names;
}

// shape_signature has -1 for dims that are free; without it all are fixed.
DeclaredInput declared_input(const tflite::Tensor& tensor, const std::string& name) {
  DeclaredInput declared{name, true, {}};
  std::vector<int32_t> dims = elements(tensor.shape()), signature = elements(tensor.shape_signature());
  if (signature.size() == dims.size()) dims = signature;
  for (size_t i = 0; i < dims.size(); ++i) {
    DeclaredInput::OneDim& one = declared.dims.emplace_back();
    if (dims[i] >= 0) one.size = dims[i];
    one.name = symbol_name(name) + "_dim" + std::to_string(i);
  }
  return declared;
}

bool has_quantized_tensors(const ModelFile& file) {
  for (size_t s = 0; s < file.subgraph_count(); ++s)
    for (uint32_t i = 0; file.subgraph(s).operators() && i < file.subgraph(s).operators()->size(); ++i)
      for (int32_t number : elements(file.subgraph(s).operators()->Get(i)->outputs())) {
        const tflite::Tensor& tensor = *file.subgraph(s).tensors()->Get(static_cast<uint32_t>(number));
        if (tensor.quantization() && tensor.quantization()->scale() &&
            tensor.quantization()->scale()->size() > 0)
          return true;
      }
  return false;
}

// The scales of those tensors that are integers of one.
void add_scales(const tflite::SubGraph& subgraph, const std::vector<int32_t>& tensors,
                const std::vector<std::string>& names, std::map<std::string, IntegerScale>& scales) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    const tflite::Tensor& tensor = *subgraph.tensors()->Get(static_cast<uint32_t>(tensors[i]));
    Expected<DType> dtype = dtype_of(tensor.type(), {});
    Expected<Quantization> q = quantization_of(tensor, {});
    if (!dtype || !q || !q->is_per_tensor()) continue;
    IntegerScale scale{q->scale(), q->zero()};
    if (is_scale_of(scale, *dtype)) scales.emplace(names[i], scale);
  }
}

Expected<ImportedModel> try_import(const ModelFile& file, const ImportOptions& options, ImportRound& round) {
  ImportedModel result;
  result.producer = text(file.model->description());
  const tflite::SubGraph& subgraph = file.entry_subgraph();
  if (std::string name = text(subgraph.name()); !name.empty()) result.graph.name = symbol_name(name);
  std::vector<std::string> keys = signature_keys(file);
  if (std::find(keys.begin(), keys.end(), options.signature) != keys.end())
    result.graph.name = options.signature;
  std::vector<std::string> names = names_of(subgraph, subgraph.inputs(), "input");
  std::vector<int32_t> inputs = elements(subgraph.inputs());

  ErrorSink errors;
  InputShapes shapes(options, round.assumptions, file.name, {});
  std::vector<DeclaredInput> declared;
  for (size_t i = 0; i < inputs.size(); ++i) {
    declared.push_back(declared_input(*subgraph.tensors()->Get(static_cast<uint32_t>(inputs[i])), names[i]));
    shapes.bind(declared.back());
  }
  std::vector<Entry> tensors(subgraph.tensors() ? subgraph.tensors()->size() : 0);
  std::vector<std::optional<TensorType>> types(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Location place{file.name, names[i], "input"};
    Expected<DType> dtype =
        dtype_of(subgraph.tensors()->Get(static_cast<uint32_t>(inputs[i]))->type(), place);
    Expected<Shape> shape = shapes.shape_of(declared[i]);
    Entry& entry = tensors[static_cast<size_t>(inputs[i])];
    if (!dtype)
      entry.failed = errors.report(dtype.take_errors());
    else if (!shape)
      entry.failed = errors.report(shape.take_errors());
    else
      types[i] = TensorType{*dtype, std::move(*shape)};
  }
  result.graph.symbols = shapes.symbols();
  round.unranged = shapes.unranged();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!types[i]) continue;
    shapes.replace_symbols(*types[i]);
    Location place{file.name, names[i], "input"};
    Entry& entry = tensors[static_cast<size_t>(inputs[i])];
    Expected<ValueId> value =
        round.fixed.count(names[i])
            ? fixed_input(names[i], *types[i], options.input_values.at(names[i]), result.graph, place)
            : result.graph.add_input(names[i], std::move(*types[i]), place);
    if (value)
      entry.value = *value;
    else
      entry.failed = errors.report(value.take_errors());
  }
  if (!errors.reported_any())
    if (Status unused = shapes.check_unused(); !unused) return unused.take_errors();
  GraphImport import(file, options, result.graph, errors);
  std::vector<std::string> outputs = names_of(subgraph, subgraph.outputs(), "output");
  import.run(std::move(tensors), outputs);
  round.wanted = import.wanted_inputs();
  if (errors.reported_any()) {
    for (const GraphBuilder::UnequalDims& dims : import.unequal_dims())
      round.assumed |= round.assumptions.make_equal(dims);
    for (const LeastDim& dim : import.least_dims()) round.assumed |= round.assumptions.make_at_least(dim);
    return errors.take();
  }
  add_scales(subgraph, inputs, names, result.scales.inputs);
  add_scales(subgraph, elements(subgraph.outputs()), outputs, result.scales.outputs);
  add_scale_nodes(import.scale_nodes(), result.graph, result.scales);
  result.scales.rounding =
      file.rounding == IntegerRounding::kFloat32 ? ScaleRounding::kEvenProduct : ScaleRounding::kAway;
  QUERNEL_TRY(result.graph, eliminate_dead_nodes(result.graph));
  for (const CustomOpDescription& op : options.custom_ops)
    if (!import.used_custom_ops().count(op.name))
      result.notes.push_back("custom op '" + op.name +
                             "' is described, but no custom operator of the model is one");
  if (options.signature.empty())
    if (std::optional<std::string> note = note_of_signatures(file)) result.notes.push_back(*note);
  result.notes.insert(result.notes.end(), import.notes().begin(), import.notes().end());
  note_assumptions(round, result);
  if (has_quantized_tensors(file)) result.rounding = file.rounding;
  return result;
}

Expected<ImportedModel> import_model(Bytes bytes, const std::string& file_name,
                                     const ImportOptions& options) {
  Location place{.file = file_name};
  if (!options.keep_inputs.empty())
    return invalid_input("--keep-input: expected an ONNX model, found one of TensorFlow Lite", place,
                         "TensorFlow Lite lists no constants among the inputs");
  QUERNEL_TRY(ModelFile file, read_model(std::move(bytes), file_name));
  file.rounding = options.rounding.value_or(IntegerRounding::kSingle);
  QUERNEL_TRY(file.entry, entry_subgraph(file, options.signature));
  QUERNEL_TRY(ImportedModel model, import_in_rounds(options, [&](ImportRound& round) {
                return try_import(file, options, round);
              }));
  const tflite::SubGraph& subgraph = file.entry_subgraph();
  model.about = read_about(file, names_of(subgraph, subgraph.inputs(), "input"), model.notes);
  return model;
}

}  // namespace
}  // namespace tflite_import

bool is_tflite(const std::string& path) {
  if (path.size() > 7 && path.ends_with(".tflite")) return true;
  std::string reason;
  int file = open_regular_file(path, &reason);
  if (file < 0) return false;
  char head[8] = {};
  bool found = read(file, head, sizeof head) == sizeof head && std::memcmp(head + 4, "TFL3", 4) == 0;
  close(file);
  return found;
}

Expected<ImportedModel> import_tflite_bytes(std::span<const uint8_t> bytes, const std::string& file_name,
                                            const ImportOptions& options) {
  return tflite_import::import_model(Bytes::own({bytes.begin(), bytes.end()}), file_name, options);
}

Expected<ImportedModel> import_tflite(const std::string& path, const ImportOptions& options) {
  QUERNEL_TRY(Bytes bytes, map_file(path, "model file"));
  return tflite_import::import_model(std::move(bytes), path, options);
}

Expected<ModelInputs> read_tflite_inputs(const std::string& path, const std::string& signature) {
  QUERNEL_TRY(Bytes bytes, map_file(path, "model file"));
  QUERNEL_TRY(tflite_import::ModelFile file, tflite_import::read_model(std::move(bytes), path));
  QUERNEL_TRY(file.entry, tflite_import::entry_subgraph(file, signature));
  ModelInputs inputs;
  const tflite::SubGraph& subgraph = file.entry_subgraph();
  inputs.names = tflite_import::names_of(subgraph, subgraph.inputs(), "input");
  inputs.with_all = inputs.names;
  return inputs;
}

}  // namespace quernel
