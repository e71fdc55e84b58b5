#include "case_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "firmware_board.h"
#include "input_values.h"
#include "test_vectors.h"

namespace quernel::tools {
namespace {

const DataFile* find_input(const DataSet& set, const std::string& name) {
  for (const DataFile& file : set.inputs)
    if (file.tensor.name == name) return &file;
  return nullptr;
}

bool has_values(const DataSet& set, const CompiledCase& compiled) {
  return std::all_of(compiled.fixed.begin(), compiled.fixed.end(), [&](const auto& fixed) {
    const DataFile* file = find_input(set, fixed.first);
    return file != nullptr && !file->error && file->tensor.bytes == fixed.second;
  });
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether the bundle of free dims takes the set's sizes: where it demands more of them than the model
// declares, it may not.
bool takes_sizes(const CompiledCase& compiled, const DataSet& set) {
  std::map<std::string, int64_t> sizes;
  for (const auto& [name, shape] : compiled.free_shapes) {
    const DataFile* file = find_input(set, name);
    if (file == nullptr || file->error) continue;
    if (file->tensor.shape.size() != shape.size()) return false;
    for (size_t d = 0; d < shape.size(); ++d)
      if (shape[d].kind() == Dim::Kind::kSymbol) sizes.emplace(shape[d].name(), file->tensor.shape[d]);
  }
  for (const Symbol& s : compiled.symbols)
    if (auto it = sizes.find(s.name); it != sizes.end())
      if (it->second < s.min || it->second > s.max || it->second % s.multiple_of != 0) return false;
  for (const auto& [name, shape] : compiled.free_shapes) {
    const DataFile* file = find_input(set, name);
    for (size_t d = 0; file != nullptr && !file->error && d < shape.size(); ++d)
      if (shape[d].evaluate(sizes).value_or(file->tensor.shape[d]) != file->tensor.shape[d]) return false;
  }
  return true;
}

}  // namespace

bool CaseCompiler::is_initializer(const DataSet& set, const std::string& input) const {
  auto it = inputs_.find(set.signature);
  return it != inputs_.end() && has(it->second.with_all, input) && !has(it->second.names, input);
}

CompileOptions CaseCompiler::options_for(const DataSet& set) const {
  CompileOptions options = options_;
  options.signature = set.signature;
  options.keep_inputs = kept_in(set);
  return options;
}

Status CaseCompiler::name_inputs(DataSet& set) {
  auto it = inputs_.find(set.signature);
  if (it == inputs_.end()) {
    QUERNEL_TRY(ModelInputs read, read_model_inputs(model_, set.signature));
    it = inputs_.emplace(set.signature, std::move(read)).first;
  }
  const ModelInputs& inputs = it->second;
  tools::name_inputs(set, set.inputs.size() > inputs.names.size() ? inputs.with_all : inputs.names);
  std::vector<std::string> names;
  for (const DataFile& file : set.inputs)
    if (is_initializer(set, file.tensor.name) && !has(options_.keep_inputs, file.tensor.name))
      names.push_back(file.tensor.name);
  if (names.empty()) return {};
  QUERNEL_TRY(auto values, read_listed_initializers(model_, names));
  std::erase_if(set.inputs, [&](const DataFile& file) {
    auto it = values.find(file.tensor.name);
    if (it == values.end() || file.error) return false;
    const Tensor &value = it->second, given = to_tensor(file.tensor);
    return value.dtype == given.dtype && value.dims == given.dims &&
           std::equal(value.bytes.data(), value.bytes.data() + value.bytes.size(), given.bytes.data());
  });
  return {};
}

std::vector<std::string> CaseCompiler::kept_in(const DataSet& set) const {
  std::vector<std::string> kept = options_.keep_inputs;
  for (const DataFile& file : set.inputs)
    if (!file.error && is_initializer(set, file.tensor.name) && !has(kept, file.tensor.name))
      kept.push_back(file.tensor.name);
  return kept;
}

Expected<CompiledCase> CaseCompiler::compile_with(const DataSet& set, const CompileOptions& options) {
  CompiledCase result;
  if (options.emit == Emit::kBundle) {
    result.bundle = fmt::format("{}/{}.qnl", scratch_dir_, compiled_.size());
  } else {
    std::string folder = fmt::format("{}/{}", scratch_dir_, compiled_.size());
    std::error_code error;
    std::filesystem::create_directory(folder, error);
    result.bundle = folder + "/" + kFirmwareStem;
  }
  QUERNEL_TRY(CompileReport report, compile(model_, result.bundle, options));
  for (const std::string& name : report.fixed_inputs)
    result.fixed.emplace(name, find_input(set, name)->tensor.bytes);
  result.fourier.insert(report.fourier_outputs.begin(), report.fourier_outputs.end());
  result.random.insert(report.random_outputs.begin(), report.random_outputs.end());
  result.report = std::move(report);
  return result;
}

Expected<CompiledCase> CaseCompiler::compile_free(const DataSet& set) {
  CompileOptions options = options_for(set);
  for (const DataFile& file : set.inputs)
    if (!file.error && !file.tensor.name.empty())
      options.input_values.emplace(file.tensor.name, to_tensor(file.tensor));
  QUERNEL_TRY(Imported imported, import_model(model_, options));
  if (imported.graph.symbols.empty()) return unsupported("the model has no free dims");
  QUERNEL_TRY(CompiledCase result, compile_with(set, options));
  result.signature = set.signature;
  result.kept = options.keep_inputs;
  result.any_shape = true;
  result.symbols = imported.graph.symbols;
  for (ValueId v : imported.graph.inputs)
    result.free_shapes.emplace(imported.graph.values[v].name, imported.graph.shape(v));
  return result;
}

Expected<const CompiledCase*> CaseCompiler::compile_for(const DataSet& set) {
  CompileOptions options = options_for(set);
  options.declared_shapes_yield = true;  // as ONNX's own runner takes the data's shapes
  for (const DataFile& file : set.inputs) {
    if (file.error || file.tensor.name.empty()) continue;
    options.input_shapes.emplace(file.tensor.name, file.tensor.shape);
    options.input_values.emplace(file.tensor.name, to_tensor(file.tensor));
  }
  if (options.emit == Emit::kBundle && tried_free_.insert(set.signature).second)
    if (Expected<CompiledCase> free = compile_free(set)) compiled_.push_back(std::move(*free));
  for (const CompiledCase& known : compiled_)
    if ((known.any_shape ? takes_sizes(known, set) : known.shapes == options.input_shapes) &&
        known.signature == set.signature && known.kept == options.keep_inputs && has_values(set, known))
      return &known;
  QUERNEL_TRY(CompiledCase result, compile_with(set, options));
  result.shapes = options.input_shapes;
  result.signature = set.signature;
  result.kept = options.keep_inputs;
  compiled_.push_back(std::move(result));
  return &compiled_.back();
}

}  // namespace quernel::tools
