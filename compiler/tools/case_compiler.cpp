#include "case_compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "fix_inputs.h"

namespace quernel::tools {
namespace {

bool all_unsupported(const Diagnostics& diagnostics) {
  return std::all_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.kind == DiagnosticKind::kUnsupported; });
}

bool has_static_inputs(const Graph& graph) {
  return std::all_of(graph.inputs.begin(), graph.inputs.end(),
                     [&](ValueId v) { return is_static(graph.shape(v)); });
}

bool is_integer_dtype(qnl_dtype dtype) { return dtype == QNL_I64 || dtype == QNL_I32 || dtype == QNL_BOOL; }

// What to make constant, least first: the inputs that diagnostics quote, then also small integers (shapes,
// axes), then also small floats (scales).
std::vector<const DataFile*> inputs_to_fix(const DataSet& set, const Diagnostics& reasons, int attempt) {
  constexpr uint64_t kSmall = 64;
  std::vector<const DataFile*> files;
  for (const DataFile& file : set.inputs) {
    if (file.error || file.tensor.name.empty()) continue;
    std::string quoted = "'" + file.tensor.name + "'";
    bool fix = std::any_of(reasons.begin(), reasons.end(),
                           [&](const Diagnostic& d) { return d.message.find(quoted) != std::string::npos; });
    bool small = file.tensor.shape.size() <= 1 &&
                 tensor_file::element_count(file.tensor.shape).value_or(kSmall + 1) <= kSmall;
    fix |= attempt >= 1 && small && is_integer_dtype(file.tensor.dtype);
    fix |= attempt >= 2 && small;
    if (fix) files.push_back(&file);
  }
  return files;
}

}  // namespace

// By the model's input names where it could be imported, else by the names in the files.
CaseCompiler::Shapes CaseCompiler::shapes_of(const DataSet& set) const {
  Shapes shapes = options_.input_shapes;
  if (!*imported_) {
    for (const DataFile& file : set.inputs)
      if (!file.tensor.name.empty() && !file.error) shapes.emplace(file.tensor.name, file.tensor.shape);
    return shapes;
  }
  const Graph& graph = (*imported_)->graph;
  std::vector<std::string> names;
  for (ValueId v : graph.inputs) names.push_back(graph.values[v].name);
  std::vector<int> match = match_files(names, set.inputs);
  for (size_t i = 0; i < names.size(); ++i)
    if (match[i] >= 0 && !set.inputs[match[i]].error && !is_static(graph.shape(graph.inputs[i])))
      shapes.emplace(names[i], set.inputs[match[i]].tensor.shape);
  return shapes;
}

// Shapes by the files' names may make things worse (no such input…): then the model's own diagnostics are the
// better ones.
Diagnostics CaseCompiler::better_of(Diagnostics with_shapes) const {
  return *imported_ || all_unsupported(with_shapes) ? with_shapes : imported_->errors();
}

Expected<std::string> CaseCompiler::write_bundle(const Graph& graph, const Shapes& shapes) {
  std::string path = fmt::format("{}/{}.qnl", scratch_dir_, files_++);
  CompileOptions options = options_;
  options.input_shapes = shapes;
  QUERNEL_TRY([[maybe_unused]] CompileReport report, compile_graph(graph, path, options));
  return path;
}

Expected<CompiledCase> CaseCompiler::compile_for(const DataSet& set) {
  if (!imported_) imported_ = import_model(model_, options_);
  bool as_it_is = *imported_ && has_static_inputs((*imported_)->graph);
  Shapes shapes = as_it_is ? options_.input_shapes : shapes_of(set);
  if (auto it = bundles_.find(shapes); it != bundles_.end()) return CompiledCase{it->second, {}};
  CompileOptions options = options_;
  options.input_shapes = shapes;
  Expected<Imported> imported = as_it_is ? *imported_ : import_model(model_, options);
  if (!imported) {
    Diagnostics reasons = better_of(imported.take_errors());
    if (!all_unsupported(reasons)) return reasons;
    return compile_fixed(set, shapes, std::move(reasons));
  }
  QUERNEL_TRY(std::string path, write_bundle(imported->graph, shapes));
  bundles_.emplace(shapes, path);
  return CompiledCase{path, {}};
}

// Bundles of this kind hold values of the data set: each serves one set only.
Expected<CompiledCase> CaseCompiler::compile_fixed(const DataSet& set, const Shapes& shapes,
                                                   Diagnostics reasons) {
  size_t tried = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::vector<const DataFile*> files = inputs_to_fix(set, reasons, attempt);
    if (files.size() <= tried) continue;
    tried = files.size();
    std::string fixed_model = fmt::format("{}/{}.onnx", scratch_dir_, files_++);
    if (!fix_inputs(model_, files, fixed_model)) break;
    CompileOptions options = options_;
    options.input_shapes = shapes;
    CompiledCase result;
    for (const DataFile* file : files) {
      result.fixed.insert(file->tensor.name);
      options.input_shapes.erase(file->tensor.name);
    }
    Expected<Imported> imported = import_model(fixed_model, options);
    if (!imported) continue;
    QUERNEL_TRY(result.bundle, write_bundle(imported->graph, options.input_shapes));
    return result;
  }
  return reasons;
}

}  // namespace quernel::tools
