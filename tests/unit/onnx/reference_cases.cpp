// Imports conformance cases and models, ONNX and TensorFlow Lite, runs them in the graph interpreter and compares
// with their reference outputs.
//   onnx_reference_cases [--filter TEXT] [--max-work N] [--verbose] [--list-unsupported] [--free-dims]
//   FOLDER...
// A folder is one case (with model.onnx or model.tflite) or holds cases. Prints PASS, FAIL, UNSUPPORTED or SKIPPED per case;
// fails on any FAIL. A model that is valid but refused as invalid is a FAIL. --free-dims: every dim of every
// input is free;
// --free-sizes: dims of one size are one free dim. A case that the importer refuses then, or whose sizes it
// excludes, is UNSUPPORTED; no answer may be wrong.
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include "frontends/import_file.h"
#include "frontends/onnx/import_model.h"
#include "graph/interpret.h"
#include "graph/verify.h"

namespace fs = std::filesystem;
using namespace quernel;

namespace {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
  double max_share = 0;  // of the elements of an integer tensor: so many may differ by atol
};

// Reads "rtol", "atol" and "max_share" that follow `from` in a tolerance.json.
Tolerance read_pair(const std::string& text, size_t from) {
  Tolerance t;
  for (auto [key, value] : {std::pair{"\"rtol\":", &t.rtol}, std::pair{"\"atol\":", &t.atol},
                            std::pair{"\"max_share\":", &t.max_share}})
    if (size_t at = text.find(key, from); at != std::string::npos)
      *value = std::strtod(text.c_str() + at + std::strlen(key), nullptr);
  return t;
}

Tolerance tolerance_of(const fs::path& folder, const std::string& output, DType dtype) {
  std::ifstream file(folder / "tolerance.json");
  if (!file) return dtype == DType::kF16 || dtype == DType::kBF16 ? Tolerance{1e-2, 1e-3} : Tolerance{};
  std::stringstream text;
  text << file.rdbuf();
  std::string json = text.str();
  size_t at = json.find("\"" + output + "\": {");
  return read_pair(json, at == std::string::npos ? 0 : at);
}

std::string compare(const Tensor& got, const Tensor& want, Tolerance t) {
  if (got.dtype != want.dtype || got.dims != want.dims)
    return "expected " + std::string(to_string(want.dtype)) + to_string(make_shape(want.dims)) + ", found " +
           std::string(to_string(got.dtype)) + to_string(make_shape(got.dims));
  int64_t wrong = 0, allowed = 0;
  if (!is_float(got.dtype)) allowed = static_cast<int64_t>(t.max_share * static_cast<double>(got.count()));
  std::string first;
  for (int64_t i = 0; i < got.count(); ++i) {
    bool equal;
    if (is_float(got.dtype)) {
      double g = element_as_f64(got, i), w = element_as_f64(want, i);
      equal = std::isnan(w) ? std::isnan(g) : g == w || std::abs(g - w) <= t.atol + t.rtol * std::abs(w);
      if (!equal && wrong == 0)
        first = "element " + std::to_string(i) + ": expected " + std::to_string(w) + ", found " +
                std::to_string(g);
    } else {
      equal = element_as_i64(got, i) == element_as_i64(want, i);
      int64_t off = std::abs(element_as_i64(got, i) - element_as_i64(want, i));
      if (!equal && static_cast<double>(off) <= t.atol && allowed > 0) equal = --allowed >= 0;
      if (!equal && wrong == 0)
        first = "element " + std::to_string(i) + ": expected " + std::to_string(element_as_i64(want, i)) +
                ", found " + std::to_string(element_as_i64(got, i));
    }
    wrong += !equal;
  }
  return wrong ? std::to_string(wrong) + " of " + std::to_string(got.count()) + " wrong; " + first : "";
}

// Scalar steps the interpreter would take, roughly.
double work_of(const Graph& graph) {
  double work = 0;
  for (const Node& node : graph.nodes) {
    double steps = 1;
    for (const Dim& d : graph.shape(node.output)) steps *= d.is_const() ? static_cast<double>(d.value()) : 1;
    if (node.op == OpKind::k_contract) {
      steps = 1;
      for (const auto& axis : node.attributes.contraction.axes)
        steps *= axis.extent.is_const() ? static_cast<double>(axis.extent.value()) : 1;
    }
    work += steps;
  }
  return work;
}

enum class Outcome { kPass, kFail, kUnsupported, kSkipped };
struct Result {
  Outcome outcome;
  std::string detail;
};

Result refused(const Diagnostics& errors) {
  bool all_unsupported = std::all_of(errors.begin(), errors.end(),
                                     [](const auto& e) { return e.kind == DiagnosticKind::kUnsupported; });
  return {all_unsupported ? Outcome::kUnsupported : Outcome::kFail, to_string(errors)};
}

std::vector<fs::path> numbered(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> paths;
  for (int i = 0; fs::exists(folder / (prefix + std::to_string(i) + ".pb")); ++i)
    paths.push_back(folder / (prefix + std::to_string(i) + ".pb"));
  return paths;
}

Expected<Tensor> read_value(const fs::path& path) {
  QUERNEL_TRY(NamedTensor named, read_tensor_proto(path.string()));
  return named.tensor;
}

// Empty where the folder is no case.
fs::path model_in(const fs::path& folder) {
  for (const char* name : {"model.onnx", "model.tflite"})
    if (fs::exists(folder / name)) return folder / name;
  return {};
}

enum class FreeDims { kNone, kAll, kBySize };

// The model with dims of its inputs free, instead of fixed from the data.
Expected<ImportedModel> import_with_free_dims(const std::string& path, ImportOptions options, FreeDims form) {
  std::map<std::string, std::vector<int64_t>> shapes = std::move(options.input_shapes);
  options.input_shapes.clear();
  std::ifstream file(path, std::ios::binary);
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file)) return invalid_input("the file is not a model");
  for (onnx::ValueInfoProto& input : *model.mutable_graph()->mutable_input()) {
    auto* shape = input.mutable_type()->mutable_tensor_type()->mutable_shape();
    const std::vector<int64_t>& dims = shapes[input.name()];
    if (dims.size() != static_cast<size_t>(shape->dim_size())) continue;
    for (int i = 0; i < shape->dim_size(); ++i)
      shape->mutable_dim(i)->set_dim_param(form == FreeDims::kAll
                                               ? input.name() + "_" + std::to_string(i)
                                               : "size_" + std::to_string(dims[static_cast<size_t>(i)]));
  }
  std::string bytes = model.SerializeAsString();
  return import_onnx_bytes({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, path, options);
}

// Whether the inputs were refused before anything was computed.
bool says_of_inputs(const Diagnostics& errors) {
  const std::string& text = errors[0].message;
  return text.rfind("symbol '", 0) == 0 || text.rfind("input '", 0) == 0;
}

Result run_set(const fs::path& folder, const fs::path& set, double max_work, FreeDims free_dims) {
  std::string model = model_in(folder).string();
  Expected<ModelInputs> listed = read_model_inputs(model);
  if (!listed) return refused(listed.errors());
  const std::vector<std::string>* names = &listed->names;
  // Free dims, and inputs that an operator needs to know (shapes, axes), are fixed from the data.
  ImportOptions options;
  options.declared_shapes_yield = true;
  std::vector<fs::path> paths = numbered(set, "input_");
  bool inputs_read = true;
  for (size_t i = 0; i < std::min(paths.size(), names->size()); ++i) {
    Expected<NamedTensor> named = read_tensor_proto(paths[i].string());
    if (named) {
      options.input_shapes[(*names)[i]] = named->tensor.dims;
      options.input_values[(*names)[i]] = named->tensor;
    } else {
      inputs_read = false;
    }
  }
  Expected<ImportedModel> imported = free_dims != FreeDims::kNone
                                         ? import_with_free_dims(model, options, free_dims)
                                         : import_file(model, options);
  if (!imported && free_dims != FreeDims::kNone) return {Outcome::kUnsupported, to_string(imported.errors())};
  if (!imported) return refused(imported.errors());
  const Graph& graph = imported->graph;
  if (Status ok = verify(graph); !ok) return {Outcome::kFail, to_string(ok.errors())};
  if (!inputs_read) return {Outcome::kFail, "an input file is not a tensor"};
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::k_threefry2x32)
      return {Outcome::kSkipped, "random numbers, which no two libraries draw the same"};
  double work = work_of(graph);
  if (work > max_work)
    return {Outcome::kSkipped, std::to_string(static_cast<int64_t>(work / 1e6)) + " M steps"};
  std::vector<Tensor> inputs;
  for (ValueId v : graph.inputs) {
    Tensor& tensor = options.input_values[graph.values[v].name];
    // Old files store bfloat16 data as uint16.
    if (graph.dtype(v) == DType::kBF16 && tensor.dtype == DType::kU16) tensor.dtype = DType::kBF16;
    inputs.push_back(tensor);
  }
  Expected<std::vector<Tensor>> outputs = interpret(graph, inputs);
  if (!outputs && free_dims != FreeDims::kNone && says_of_inputs(outputs.errors()))
    return {Outcome::kUnsupported, to_string(outputs.errors())};
  if (!outputs) return {Outcome::kFail, to_string(outputs.errors())};
  std::vector<fs::path> wanted = numbered(set, "output_");
  for (size_t i = 0; i < wanted.size(); ++i) {
    Expected<Tensor> want = read_value(wanted[i]);
    if (!want) return refused(want.errors());
    if (i < outputs->size() && (*outputs)[i].dtype == DType::kBF16 && want->dtype == DType::kU16)
      want->dtype = DType::kBF16;
    if (i >= outputs->size()) return {Outcome::kFail, "fewer outputs than reference data"};
    Tolerance tolerance = tolerance_of(folder, graph.outputs[i].name, want->dtype);
    // Stored Fourier transforms are exact to a fraction of the largest element, also where the true value is
    // 0.
    if (folder.filename().string().rfind("test_dft", 0) == 0 && is_float(want->dtype))
      for (int64_t k = 0; k < want->count(); ++k)
        tolerance.atol = std::max(tolerance.atol, 1e-6 * std::abs(element_as_f64(*want, k)));
    std::string difference = compare((*outputs)[i], *want, tolerance);
    if (!difference.empty())
      return {Outcome::kFail,
              set.filename().string() + " output '" + graph.outputs[i].name + "': " + difference};
  }
  return {Outcome::kPass, ""};
}

Result run_case(const fs::path& folder, double max_work, FreeDims free_dims) {
  Result result{Outcome::kSkipped, "no data sets"};
  for (int i = 0; fs::exists(folder / ("test_data_set_" + std::to_string(i))); ++i) {
    result = run_set(folder, folder / ("test_data_set_" + std::to_string(i)), max_work, free_dims);
    if (result.outcome != Outcome::kPass) break;
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<fs::path> cases;
  std::string filter;
  double max_work = 2e8;
  bool verbose = false, list_unsupported = false;
  FreeDims free_dims = FreeDims::kNone;
  for (int i = 1; i < argc; ++i) {
    std::string arg = argv[i];
    if (arg == "--filter" && i + 1 < argc)
      filter = argv[++i];
    else if (arg == "--max-work" && i + 1 < argc)
      max_work = std::strtod(argv[++i], nullptr);
    else if (arg == "--verbose")
      verbose = true;
    else if (arg == "--free-dims")
      free_dims = FreeDims::kAll;
    else if (arg == "--free-sizes")
      free_dims = FreeDims::kBySize;
    else if (arg == "--list-unsupported")
      list_unsupported = true;
    else if (!model_in(arg).empty())
      cases.push_back(arg);
    else if (fs::is_directory(arg))
      for (const auto& entry : fs::directory_iterator(arg))
        if (!model_in(entry.path()).empty()) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  static const char* const kNames[] = {"PASS", "FAIL", "UNSUPPORTED", "SKIPPED"};
  std::map<Outcome, int> counts;
  for (const fs::path& folder : cases) {
    std::string name = folder.filename().string();
    if (name.find(filter) == std::string::npos) continue;
    auto start = std::chrono::steady_clock::now();
    if (verbose) std::cerr << name << "\n";
    Result result = run_case(folder, max_work, free_dims);
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ++counts[result.outcome];
    bool detail = result.outcome == Outcome::kFail || result.outcome == Outcome::kSkipped || list_unsupported;
    std::cout << kNames[static_cast<int>(result.outcome)] << " " << name
              << (detail && !result.detail.empty() ? ": " + result.detail : "");
    if (seconds > 1) std::cout << " (" << static_cast<int>(seconds) << " s)";
    std::cout << std::endl;
  }
  if (cases.empty()) std::cout << "no reference cases found; nothing was tested\n";
  std::cout << counts[Outcome::kPass] << " pass, " << counts[Outcome::kFail] << " fail, "
            << counts[Outcome::kUnsupported] << " unsupported, " << counts[Outcome::kSkipped] << " skipped\n";
  return counts[Outcome::kFail] != 0;
}
