#include "frontends/onnx/import_model.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "frontends/onnx/dim_assumptions.h"
#include "frontends/onnx/empty_dims.h"
#include "frontends/onnx/import_graph.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/read_model.h"
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

// A symbol name that the IR's text form can hold.
std::string symbol_name(const std::string& name) {
  std::string result;
  for (char c : name) result += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0]))) result.insert(0, "d");
  return result;
}

// What a free dim may be at most, so that products of dims do not overflow.
constexpr int64_t kMaxFreeDim = int64_t{1} << 31;

// The graph inputs' shapes: fixes free dims from the options, makes symbols of the others.
class InputShapes {
 public:
  // `constants`: initializers that the model lists as inputs.
  InputShapes(const ImportOptions& options, const DimAssumptions& assumptions, std::string file_name,
              const std::vector<std::string>& constants)
      : options_(options),
        assumptions_(assumptions),
        file_name_(std::move(file_name)),
        constants_(constants.begin(), constants.end()) {}

  // Binds named dims from whole input shapes first, so that they hold for all inputs.
  void bind(const onnx::ValueInfoProto& input);
  Expected<TensorType> type_of(const onnx::ValueInfoProto& input);
  // After all inputs: the type with what stands for its symbols.
  void replace_symbols(TensorType& type) const;
  // The symbols that stand for themselves.
  std::vector<Symbol> symbols() const;
  // Those without a range from the options.
  const std::set<std::string>& unranged() const { return unranged_; }
  // After all inputs: options that fit nothing.
  Status check_unused() const;

 private:
  static std::string dim_name(const onnx::ValueInfoProto& input, int i);
  const std::vector<int64_t>* shape_option(const std::string& input) const;

  const ImportOptions& options_;
  const DimAssumptions& assumptions_;
  std::string file_name_;
  std::map<std::string, int64_t> bound_;  // named dims fixed through input_shapes
  std::set<std::string> free_names_, input_names_, used_symbols_, constants_, unranged_;
  std::map<std::string, std::string> symbols_;  // dim name -> symbol
  std::vector<Symbol> facts_;                   // of all symbols
};

std::string InputShapes::dim_name(const onnx::ValueInfoProto& input, int i) {
  const auto& dim = input.type().tensor_type().shape().dim(i);
  // "?" is what some exporters call every free dim.
  if (dim.has_dim_param() && !dim.dim_param().empty() && dim.dim_param() != "?") return dim.dim_param();
  return input.name() + "_dim" + std::to_string(i);
}

const std::vector<int64_t>* InputShapes::shape_option(const std::string& input) const {
  auto it = options_.input_shapes.find(input);
  return it == options_.input_shapes.end() ? nullptr : &it->second;
}

void InputShapes::bind(const onnx::ValueInfoProto& input) {
  const std::vector<int64_t>* shape = shape_option(input.name());
  const auto& declared = input.type().tensor_type().shape();
  if (!shape || static_cast<int>(shape->size()) != declared.dim_size()) return;
  for (int i = 0; i < declared.dim_size(); ++i)
    if (!declared.dim(i).has_dim_value() || declared.dim(i).dim_value() < 0)
      bound_.emplace(dim_name(input, i), (*shape)[i]);
}

bool contradicts(const onnx::TensorShapeProto& declared, const std::vector<int64_t>& shape) {
  bool differs = static_cast<int>(shape.size()) != declared.dim_size();
  for (int i = 0; !differs && i < declared.dim_size(); ++i)
    differs = declared.dim(i).has_dim_value() && declared.dim(i).dim_value() >= 0 &&
              declared.dim(i).dim_value() != shape[static_cast<size_t>(i)];
  return differs;
}

Expected<TensorType> InputShapes::type_of(const onnx::ValueInfoProto& input) {
  Location place{file_name_, input.name(), "input"};
  input_names_.insert(input.name());
  if (!input.has_type() || input.type().value_case() != onnx::TypeProto::kTensorType)
    return unsupported("expected a tensor, found input '" + input.name() + "' of another type", place,
                       "sequences, optionals, maps and sparse tensors are not supported");
  const auto& tensor = input.type().tensor_type();
  QUERNEL_TRY(DType dtype, dtype_from_onnx(tensor.elem_type(), place));
  const std::vector<int64_t>* fixed = shape_option(input.name());
  TensorType type{dtype, {}};
  if (!tensor.has_shape()) {
    if (!fixed)
      return unsupported("input '" + input.name() + "' has no shape, not even a rank", place,
                         "fix it with --input-shape " + input.name() + "=D0,D1,...");
    type.shape = make_shape(*fixed);
  } else if (fixed && options_.declared_shapes_yield && contradicts(tensor.shape(), *fixed)) {
    type.shape = make_shape(*fixed);
    if (!is_sane_shape(*fixed))
      return invalid_input(
          "input '" + input.name() + "': shape " + to_string(type.shape) + " is negative or too large",
          place);
    return type;
  } else if (fixed && static_cast<int>(fixed->size()) != tensor.shape().dim_size()) {
    return invalid_input("input '" + input.name() + "': expected a shape of rank " +
                             std::to_string(tensor.shape().dim_size()) + ", found one of rank " +
                             std::to_string(fixed->size()),
                         place);
  }
  for (int i = 0; tensor.has_shape() && i < tensor.shape().dim_size(); ++i) {
    const auto& dim = tensor.shape().dim(i);
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      if (fixed && (*fixed)[i] != dim.dim_value())
        return invalid_input("input '" + input.name() + "': dim " + std::to_string(i) + " is " +
                                 std::to_string(dim.dim_value()) + " in the model, and was asked to be " +
                                 std::to_string((*fixed)[i]),
                             place);
      type.shape.push_back(dim.dim_value());
      continue;
    }
    std::string name = dim_name(input, i);
    free_names_.insert(name);
    std::optional<int64_t> value;
    if (auto it = bound_.find(name); it != bound_.end()) value = it->second;
    if (auto it = options_.dims.find(name); it != options_.dims.end()) value = it->second;
    if (fixed && *value != (*fixed)[i])
      return invalid_input("input '" + input.name() + "': free dim '" + name + "' cannot be both " +
                               std::to_string(*value) + " and " + std::to_string((*fixed)[i]),
                           place);
    if (value) {
      type.shape.push_back(*value);
      continue;
    }
    auto [symbol, inserted] = symbols_.try_emplace(name);
    if (inserted) {
      symbol->second = symbol_name(name);
      while (!used_symbols_.insert(symbol->second).second) symbol->second += "_";
      Symbol facts{symbol->second, 0, kMaxFreeDim, 1, false, {}};
      if (auto it = options_.dim_ranges.find(name); it != options_.dim_ranges.end()) {
        facts = it->second;
        facts.name = symbol->second;
      } else {
        unranged_.insert(facts.name);
        if (auto least = assumptions_.min.find(facts.name); least != assumptions_.min.end())
          facts.min = least->second;
      }
      if (auto it = assumptions_.least.find(facts.name); it != assumptions_.least.end())
        facts.min = std::max(facts.min, it->second);
      if (auto it = assumptions_.max.find(facts.name); it != assumptions_.max.end())
        facts.max = std::min(facts.max, it->second);
      if (auto it = assumptions_.multiple_of.find(facts.name); it != assumptions_.multiple_of.end())
        facts = with_multiple(facts, it->second);
      facts_.push_back(facts);
    }
    type.shape.push_back(Dim::symbol(*std::find_if(
        facts_.begin(), facts_.end(), [&](const Symbol& s) { return s.name == symbol->second; })));
  }
  std::vector<int64_t> known;
  for (const Dim& d : type.shape)
    if (d.is_const()) known.push_back(d.value());
  if (!is_sane_shape(known))
    return invalid_input(
        "input '" + input.name() + "': shape " + to_string(type.shape) + " is negative or too large", place);
  return type;
}

void InputShapes::replace_symbols(TensorType& type) const {
  std::map<std::string, Dim> now;
  for (const Symbol& facts : facts_) now.emplace(facts.name, Dim::symbol(facts));
  for (Dim& dim : type.shape)
    if (dim.kind() == Dim::Kind::kSymbol)
      if (auto it = assumptions_.same_as.find(dim.name()); it != assumptions_.same_as.end())
        dim = it->second.substitute(now);
}

std::vector<Symbol> InputShapes::symbols() const {
  std::vector<Symbol> symbols;
  for (const Symbol& facts : facts_)
    if (!assumptions_.same_as.count(facts.name)) symbols.push_back(facts);
  return symbols;
}

Status InputShapes::check_unused() const {
  Diagnostics errors;
  auto list = [](const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
    return text.empty() ? std::string("none") : text;
  };
  Location place{.file = file_name_};
  for (const auto& [name, value] : options_.dims) {
    if (!free_names_.count(name))
      errors.push_back(invalid_input("the model has no free dim '" + name + "'", place,
                                     "its free dims: " + list(free_names_)));
  }
  for (const auto& [name, range] : options_.dim_ranges)
    if (!free_names_.count(name))
      errors.push_back(invalid_input("the model has no free dim '" + name + "'", place,
                                     "its free dims: " + list(free_names_)));
  for (const auto& [name, shape] : options_.input_shapes)
    if (constants_.count(name))
      errors.push_back(invalid_input("input '" + name + "' is an initializer, too, and taken as a constant",
                                     place, "--keep-input " + name + " makes it an input"));
    else if (!input_names_.count(name))
      errors.push_back(
          invalid_input("the model has no input '" + name + "'", place, "its inputs: " + list(input_names_)));
  return errors;
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

Expected<ValueId> fixed_input(const std::string& name, const TensorType& type, const Tensor& value,
                              Graph& graph, const Location& place) {
  bool fits = value.dtype == type.dtype && value.dims.size() == type.shape.size();
  for (size_t i = 0; fits && i < value.dims.size(); ++i)
    fits = !type.shape[i].is_const() || type.shape[i].value() == value.dims[i];
  if (!fits)
    return invalid_input("input '" + name + "': expected a value of " + to_string(type) + ", found " +
                             to_string(TensorType{value.dtype, make_shape(value.dims)}),
                         place);
  Attributes attributes;
  attributes.tensor = value;
  return graph.add(OpKind::k_constant, {}, std::move(attributes), place, name);
}

// One attempt. `fixed`: inputs that are constants, with their values from the options, and the nodes that
// need them; `wanted` receives those that should be; what free dims must fulfil is added to `assumptions`,
// and then `assumed` is set.
Expected<ImportedModel> try_import(const std::shared_ptr<const onnx::ModelProto>& model,
                                   const std::string& file_name, const ImportOptions& options,
                                   const std::map<std::string, std::string>& fixed,
                                   std::map<std::string, std::string>& wanted, DimAssumptions& assumptions,
                                   bool& assumed, std::set<std::string>& unranged) {
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
  InputShapes shapes(options, assumptions, file_name, constants);
  std::unordered_map<std::string, Entry> values;
  for (const auto* input : inputs) shapes.bind(*input);
  std::map<const onnx::ValueInfoProto*, TensorType> types;
  for (const auto* input : inputs) {
    Expected<TensorType> type = shapes.type_of(*input);
    if (type)
      types.emplace(input, std::move(*type));
    else
      values[input->name()].failed = errors.report(type.take_errors());
  }
  result.graph.symbols = shapes.symbols();
  unranged = shapes.unranged();
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
        fixed.count(input->name())
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
  TensorSource source{model, file_name, {}, options.max_initializer_bytes, options.external_dirs};
  GraphImport import(*model, result.opset, std::move(source), options, result.graph, errors);
  import.run(std::move(values));
  wanted = import.wanted_inputs();
  if (errors.reported_any()) {
    for (const GraphBuilder::UnequalDims& dims : import.unequal_dims())
      assumed |= assumptions.make_equal(dims);
    for (const LeastDim& dim : import.least_dims()) assumed |= assumptions.make_at_least(dim);
    return errors.take();
  }
  // Bodies and attempts leave dead nodes behind.
  QUERNEL_TRY(result.graph, eliminate_dead_nodes(result.graph));
  for (const CustomOpDescription& op : options.custom_ops)
    if (!import.used_custom_ops().count(op.name))
      result.notes.push_back("custom op '" + op.name + "' is described, but no node of the model is one");
  std::vector<std::string> notes = import.notes();
  result.notes.insert(result.notes.end(), notes.begin(), notes.end());
  result.notes.insert(result.notes.end(), assumptions.notes.begin(), assumptions.notes.end());
  for (const auto& [name, least] : assumptions.least)
    if (!assumptions.same_as.count(name))
      result.notes.push_back("free dim '" + name + "' must be at least " + std::to_string(least));
  for (const auto& [name, most] : assumptions.max)
    if (!assumptions.same_as.count(name))
      result.notes.push_back("free dim '" + name + "' must be at most " + std::to_string(most));
  for (const auto& [name, multiple] : assumptions.multiple_of)
    result.notes.push_back("free dim '" + name + "' must be a multiple of " + std::to_string(multiple));
  for (const Graph::Output& output : result.graph.outputs)
    if (const Node* node = result.graph.def(output.value);
        node && (node->location.op == "DFT" || node->location.op == "STFT"))
      result.fourier_outputs.push_back(output.name);
  for (const auto& [name, node] : fixed) {
    result.notes.push_back("input '" + name + "' is fixed to the given value, which node " + node +
                           " needs at compile time");
    result.fixed_inputs.push_back(name);
  }
  return result;
}

// Inputs whose values turn out to be needed become constants, one round of them after the other.
Expected<ImportedModel> import_assuming(const std::shared_ptr<const onnx::ModelProto>& model,
                                        const std::string& file_name, const ImportOptions& options,
                                        DimAssumptions assumptions, std::set<std::string>& unranged) {
  std::map<std::string, std::string> fixed;
  while (true) {
    std::map<std::string, std::string> wanted;
    bool assumed = false;
    Expected<ImportedModel> result =
        try_import(model, file_name, options, fixed, wanted, assumptions, assumed, unranged);
    size_t before = fixed.size();
    for (const auto& [name, node] : wanted)
      if (options.input_values.count(name)) fixed.emplace(name, node);
    if (result || (fixed.size() == before && !assumed)) return result;
  }
}

Expected<ImportedModel> import_model(const std::shared_ptr<const onnx::ModelProto>& model,
                                     const std::string& file_name, const ImportOptions& options) {
  return import_with_empty_dims(
      [&](const std::set<std::string>& never_empty, std::set<std::string>& unranged) {
        DimAssumptions assumptions;
        for (const std::string& name : never_empty) assumptions.min[name] = 1;
        return import_assuming(model, file_name, options, std::move(assumptions), unranged);
      });
}

}  // namespace
}  // namespace onnx_import

Expected<ImportedModel> import_onnx_bytes(std::span<const uint8_t> bytes, const std::string& file_name,
                                          const ImportOptions& options) {
  QUERNEL_TRY(std::shared_ptr<const onnx::ModelProto> model, onnx_import::parse_model(bytes, file_name));
  return onnx_import::import_model(model, file_name, options);
}

Expected<ImportedModel> import_onnx(const std::string& path, const ImportOptions& options) {
  std::shared_ptr<const onnx::ModelProto> model;
  {
    QUERNEL_TRY(Bytes bytes, onnx_import::map_file(path, "model file"));
    QUERNEL_TRY(model, onnx_import::parse_model({bytes.data(), bytes.size()}, path));
  }
  return onnx_import::import_model(model, path, options);
}

Expected<OnnxInputs> read_onnx_inputs(const std::string& path) {
  QUERNEL_TRY(Bytes bytes, onnx_import::map_file(path, "model file"));
  QUERNEL_TRY(auto model, onnx_import::parse_model({bytes.data(), bytes.size()}, path));
  OnnxInputs result;
  for (const auto* input : onnx_import::inputs_of(model->graph()).inputs)
    result.names.push_back(input->name());
  for (const auto& input : model->graph().input()) result.with_all.push_back(input.name());
  return result;
}

Expected<std::map<std::string, Tensor>> read_onnx_initializers(const std::string& path,
                                                               const std::vector<std::string>& names) {
  QUERNEL_TRY(Bytes bytes, onnx_import::map_file(path, "model file"));
  QUERNEL_TRY(auto model, onnx_import::parse_model({bytes.data(), bytes.size()}, path));
  onnx_import::TensorSource source{model, path, {}, INT64_MAX};
  std::map<std::string, Tensor> values;
  for (const auto& proto : model->graph().initializer()) {
    if (std::find(names.begin(), names.end(), proto.name()) == names.end()) continue;
    Expected<Tensor> value = onnx_import::read_tensor(proto, source, {.file = path, .node = proto.name()});
    if (value) values.insert_or_assign(proto.name(), std::move(*value));
  }
  return values;
}

}  // namespace quernel
