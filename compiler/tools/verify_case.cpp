#include "verify_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "command.h"
#include "compare.h"
#include "pipeline.h"
#include "quernel/runtime.hpp"
#include "tensor_file.h"

namespace quernel::tools {
namespace {

namespace fs = std::filesystem;
using tensor_file::HostTensor;

// One file of a data set; a damaged one matters only where it is needed.
struct DataFile {
  std::string name;  // "test_data_set_0/input_0.pb"
  HostTensor tensor;
  tensor_file::Error error;
};

struct DataSet {
  std::string name;
  std::vector<DataFile> inputs, outputs;
};

CaseResult failed(std::string reason) { return {Verdict::kFail, std::move(reason)}; }

// Unsupported only when that is all that the compiler says.
CaseResult from_diagnostics(const Diagnostics& diagnostics) {
  const Diagnostic* first = &diagnostics[0];
  bool unsupported = true;
  for (const Diagnostic& d : diagnostics)
    if (d.kind != DiagnosticKind::kUnsupported && unsupported) unsupported = false, first = &d;
  std::string count = fmt::format("{} diagnostic{}, first: ", diagnostics.size(), diagnostics.size() == 1 ? "" : "s");
  return {unsupported ? Verdict::kUnsupported : Verdict::kFail, count + one_line(*first)};
}

std::vector<DataFile> read_files(const fs::path& folder, const std::string& role) {
  std::vector<DataFile> files;
  for (int k = 0;; ++k) {
    std::string name = fmt::format("{}_{}.pb", role, k);
    std::error_code error;
    if (!fs::exists(folder / name, error)) return files;
    DataFile file;
    file.name = folder.filename().string() + "/" + name;
    file.error = tensor_file::read_pb((folder / name).string(), &file.tensor);
    files.push_back(std::move(file));
  }
}

std::vector<DataSet> read_data_sets(const std::string& dir) {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir))
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<DataSet> sets;
  for (const fs::path& folder : folders)
    sets.push_back({folder.filename().string(), read_files(folder, "input"), read_files(folder, "output")});
  return sets;
}

// Which file holds each of the named tensors: the one of that name, else the first of the rest in order. -1: none.
std::vector<int> match_files(const std::vector<std::string>& names, const std::vector<DataFile>& files) {
  std::vector<int> match(names.size(), -1);
  std::vector<bool> used(files.size(), false);
  for (size_t i = 0; i < names.size(); ++i)
    for (size_t k = 0; k < files.size() && match[i] < 0; ++k)
      if (!used[k] && files[k].tensor.name == names[i]) match[i] = static_cast<int>(k), used[k] = true;
  size_t next = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (match[i] >= 0) continue;
    while (next < files.size() && used[next]) ++next;
    if (next < files.size()) match[i] = static_cast<int>(next), used[next] = true;
  }
  return match;
}

// Compiles on demand: once for all data sets when the model's shapes are fixed, else once per set of shapes.
class Bundles {
 public:
  Bundles(std::string model, const CaseOptions& options) : model_(std::move(model)), options_(options) {}

  // Path of a bundle whose inputs have the data set's shapes.
  Expected<std::string> bundle_for(const DataSet& set) {
    std::map<std::string, std::vector<int64_t>> shapes = options_.compile.input_shapes;
    if (!imported_) {
      imported_ = import_model(model_, options_.compile);
      if (*imported_) {
        for (ValueId v : (*imported_)->graph.inputs) input_names_.push_back((*imported_)->graph.values[v].name);
        fixed_ = inputs_fixed((*imported_)->graph);
      }
    }
    if (fixed_) {
      if (paths_.empty()) return compile_to(shapes, (*imported_)->graph);
      return paths_.begin()->second;
    }
    add_shapes(set, &shapes);
    if (auto it = paths_.find(shapes); it != paths_.end()) return it->second;
    CompileOptions compile_options = options_.compile;
    compile_options.input_shapes = shapes;
    Expected<Imported> imported = import_model(model_, compile_options);
    if (!imported && !*imported_) return only_real_causes(imported.take_errors());
    if (!imported) return imported.take_errors();
    return compile_to(shapes, imported->graph);
  }

 private:
  static bool inputs_fixed(const Graph& graph) {
    return std::all_of(graph.inputs.begin(), graph.inputs.end(), [&](ValueId v) { return is_static(graph.shape(v)); });
  }

  // By the model's input names where it could be imported, else by the names in the files.
  void add_shapes(const DataSet& set, std::map<std::string, std::vector<int64_t>>* shapes) const {
    if (*imported_) {
      std::vector<int> match = match_files(input_names_, set.inputs);
      for (size_t i = 0; i < input_names_.size(); ++i) {
        const Graph& graph = (*imported_)->graph;
        if (match[i] >= 0 && !set.inputs[match[i]].error && !is_static(graph.shape(graph.inputs[i])))
          shapes->emplace(input_names_[i], set.inputs[match[i]].tensor.shape);
      }
      return;
    }
    for (const DataFile& file : set.inputs)
      if (!file.tensor.name.empty() && !file.error) shapes->emplace(file.tensor.name, file.tensor.shape);
  }

  // When shapes by the files' names made things worse (no such input…), the model's own diagnostics are the better ones.
  Diagnostics only_real_causes(Diagnostics with_shapes) const {
    bool names_failed = false;
    for (const Diagnostic& d : with_shapes) names_failed |= d.kind == DiagnosticKind::kInvalidInput;
    return names_failed ? imported_->errors() : with_shapes;
  }

  Expected<std::string> compile_to(const std::map<std::string, std::vector<int64_t>>& shapes, const Graph& graph) {
    std::string path = fmt::format("{}/{}.qnl", options_.scratch_dir, paths_.size());
    CompileOptions compile_options = options_.compile;
    compile_options.input_shapes = shapes;
    QUERNEL_TRY([[maybe_unused]] CompileReport report, compile_graph(graph, path, compile_options));
    paths_.emplace(shapes, path);
    return path;
  }

  std::string model_;
  const CaseOptions& options_;
  std::optional<Expected<Imported>> imported_;  // without shapes from data
  std::vector<std::string> input_names_;
  bool fixed_ = false;
  std::map<std::map<std::string, std::vector<int64_t>>, std::string> paths_;
};

std::vector<qnl_tensor> signature(const Bundle& bundle, qnl_tensor_role role) {
  std::vector<qnl_tensor> tensors;
  qnl_tensor tensor;
  for (uint32_t i = 0; qnl_bundle_get_tensor(bundle.get(), 0, role, i, &tensor) == QNL_OK; ++i) tensors.push_back(tensor);
  return tensors;
}

std::vector<std::string> names_of(const std::vector<qnl_tensor>& tensors) {
  std::vector<std::string> names;
  for (const qnl_tensor& t : tensors) names.emplace_back(t.name);
  return names;
}

std::string runtime_text(const qnl_error& error) { return fmt::format("{}: {}", qnl_status_text(error.status), error.text); }

// A file of data that cannot be read: strings and the like are beyond Quernel, anything else is a failure.
CaseResult unreadable(const DataFile& file) {
  bool unsupported = file.error->find("is not supported") != std::string::npos;
  return {unsupported ? Verdict::kUnsupported : Verdict::kFail, file.name + ": " + *file.error};
}

// Nothing when the set passes.
std::optional<CaseResult> run_data_set(const std::string& path, const DataSet& set, const Json* tolerances, int threads) {
  qnl_error error;
  Bundle bundle;
  Device device;
  Session session;
  if (bundle.open(path.c_str(), nullptr, &error) != QNL_OK || device.open_cpu(static_cast<uint32_t>(threads), &error) != QNL_OK ||
      session.create(bundle, device, nullptr, &error) != QNL_OK)
    return failed(set.name + ": " + runtime_text(error));

  std::vector<qnl_tensor> inputs = signature(bundle, QNL_INPUT), outputs = signature(bundle, QNL_OUTPUT);
  std::vector<int> match = match_files(names_of(inputs), set.inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (match[i] < 0) return failed(fmt::format("{}: no file for input '{}'", set.name, inputs[i].name));
    const DataFile& file = set.inputs[match[i]];
    if (file.error) return unreadable(file);
    qnl_tensor tensor = {};
    tensor.name = inputs[i].name;
    tensor.dtype = file.tensor.dtype;
    tensor.rank = static_cast<uint32_t>(file.tensor.shape.size());
    std::copy(file.tensor.shape.begin(), file.tensor.shape.end(), tensor.shape);
    tensor.bytes = file.tensor.bytes.size();
    tensor.data = const_cast<std::byte*>(file.tensor.bytes.data());
    if (session.set_input(tensor, &error) != QNL_OK) return failed(file.name + ": " + runtime_text(error));
  }
  if (session.run(&error) != QNL_OK) return failed(set.name + ": " + runtime_text(error));

  if (set.outputs.size() > outputs.size())
    return failed(fmt::format("{}: expected {} outputs, found {} files of outputs", set.name, outputs.size(), set.outputs.size()));
  match = match_files(names_of(outputs), set.outputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (match[i] < 0) continue;
    const DataFile& file = set.outputs[match[i]];
    if (file.error) return unreadable(file);
    qnl_tensor tensor;
    if (session.tensor(QNL_OUTPUT, outputs[i].name, &tensor, &error) != QNL_OK) return failed(set.name + ": " + runtime_text(error));
    HostTensor found;
    found.dtype = tensor.dtype;
    found.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    const auto* data = static_cast<const std::byte*>(tensor.data);
    if (tensor.bytes > 0) found.bytes.assign(data, data + tensor.bytes);
    if (auto message = compare(file.tensor, found, tolerance_of(tolerances, outputs[i].name, file.tensor.dtype)))
      return failed(fmt::format("{}: output '{}': {}", set.name, outputs[i].name, *message));
  }
  return std::nullopt;
}

}  // namespace

CaseResult verify_case(const std::string& dir, const CaseOptions& options) {
  std::optional<Json> tolerances;
  std::error_code code;
  if (std::string path = dir + "/tolerance.json"; fs::exists(path, code)) {
    std::vector<std::byte> bytes;
    if (tensor_file::Error error = tensor_file::read_file(path, &bytes)) return failed("tolerance.json: " + *error);
    Expected<Json> json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
    if (!json) return failed(one_line(json.errors()[0]));
    tolerances = std::move(*json);
  }
  std::vector<DataSet> sets = read_data_sets(dir);
  if (sets.empty()) return failed("expected a folder test_data_set_0 beside the model");
  Bundles bundles(dir + "/model.onnx", options);
  for (const DataSet& set : sets) {
    Expected<std::string> bundle = bundles.bundle_for(set);
    if (!bundle) return from_diagnostics(bundle.errors());
    if (auto result = run_data_set(*bundle, set, tolerances ? &*tolerances : nullptr, options.run_threads)) return *result;
  }
  return {Verdict::kPass, fmt::format("{} data set{}", sets.size(), sets.size() == 1 ? "" : "s")};
}

}  // namespace quernel::tools
