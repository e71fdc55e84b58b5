#include "run_compiled.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "pipeline.h"

namespace quernel::testing {
namespace {

Diagnostic runtime_failure(const char* step, const qnl_error& error) {
  return internal_error(std::string(step) + ": " + error.text);
}

qnl_tensor view_of(const std::string& name, const Tensor& t) {
  qnl_tensor view = {};
  view.name = name.c_str();
  view.dtype = static_cast<qnl_dtype>(t.dtype);
  view.rank = static_cast<uint32_t>(t.dims.size());
  for (size_t i = 0; i < t.dims.size(); ++i) view.shape[i] = t.dims[i];
  view.bytes = t.bytes.size();
  view.data = const_cast<uint8_t*>(t.bytes.data());
  return view;
}

}  // namespace

Expected<CompiledGraph> CompiledGraph::make(const Graph& graph, const CompileOptions& options,
                                            unsigned threads) {
  char path[] = "/tmp/quernel-differential-XXXXXX";
  int file = mkstemp(path);
  if (file < 0) return internal_error("cannot make a temporary file");
  close(file);
  struct Remove {
    const char* path;
    ~Remove() { unlink(path); }
  } remove{path};
  QUERNEL_TRY(CompileReport report, compile_graphs({graph}, path, options));
  CompiledGraph compiled;
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (!graph.state_of_input(i))
      compiled.inputs_.push_back(graph.values[static_cast<size_t>(graph.inputs[i])].name);
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (!graph.state_of_output(i)) compiled.outputs_.push_back(graph.outputs[i].name);
  qnl_error error = {};
  qnl_bundle_options open_options = {};
  open_options.verify_weights = 1;
  if (compiled.bundle_.open(path, &open_options, &error) != QNL_OK) return runtime_failure("open", error);
  if (compiled.device_.open_cpu(threads, &error) != QNL_OK) return runtime_failure("device", error);
  if (compiled.session_.create(compiled.bundle_, compiled.device_, nullptr, &error) != QNL_OK)
    return runtime_failure("create", error);
  return compiled;
}

Expected<std::vector<Tensor>> CompiledGraph::run(const std::vector<Tensor>& inputs) {
  qnl_error error = {};
  for (size_t i = 0; i < inputs.size(); ++i) {
    qnl_tensor tensor = view_of(inputs_[i], inputs[i]);
    if (qnl_session_set_input(session_.get(), &tensor, &error) != QNL_OK)
      return runtime_failure("set input", error);
  }
  if (qnl_session_run(session_.get(), &error) != QNL_OK) return runtime_failure("run", error);
  std::vector<Tensor> outputs;
  for (const std::string& name : outputs_) {
    qnl_tensor tensor = {};
    if (qnl_session_get(session_.get(), QNL_OUTPUT, name.c_str(), &tensor, &error) != QNL_OK)
      return runtime_failure("get output", error);
    const uint8_t* data = static_cast<const uint8_t*>(tensor.data);
    outputs.push_back({static_cast<DType>(tensor.dtype),
                       {tensor.shape, tensor.shape + tensor.rank},
                       Bytes::own({data, data + tensor.bytes})});
  }
  return outputs;
}

Expected<std::vector<Tensor>> run_compiled(const Graph& graph, const std::vector<Tensor>& inputs,
                                           const CompileOptions& options, unsigned threads) {
  QUERNEL_TRY(CompiledGraph compiled, CompiledGraph::make(graph, options, threads));
  return compiled.run(inputs);
}

std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype != want.dtype || got.dims != want.dims) return "types differ";
  int64_t worst = -1;
  double worst_error = 0;
  for (int64_t i = 0; i < want.count(); ++i) {
    if (!is_float(want.dtype)) {
      if (element_as_i64(got, i) == element_as_i64(want, i)) continue;
      return "element " + std::to_string(i) + ": expected " + std::to_string(element_as_i64(want, i)) +
             ", found " + std::to_string(element_as_i64(got, i));
    }
    double a = element_as_f64(got, i), b = element_as_f64(want, i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    double error =
        std::isfinite(a) && std::isfinite(b) ? std::fabs(a - b) - (atol + rtol * std::fabs(b)) : INFINITY;
    if (error > worst_error) worst_error = error, worst = i;
  }
  if (worst < 0) return {};
  return "element " + std::to_string(worst) + ": expected " + std::to_string(element_as_f64(want, worst)) +
         ", found " + std::to_string(element_as_f64(got, worst));
}

namespace {

void note_dtype(DType dtype, DType& narrowest) {
  bool narrower =
      bit_width(dtype) < bit_width(narrowest) || (dtype == DType::kBF16 && narrowest == DType::kF16);
  // Only exact values are rounded to f8.
  if (is_float(dtype) && bit_width(dtype) > 8 && narrower) narrowest = dtype;
}

// Everything that a loop or branch computes.
void note_bodies(const Node& node, DType& narrowest) {
  if (!is_control(node.op)) return;
  for (const Graph& body : node.attributes.control->bodies) {
    for (const Value& value : body.values) note_dtype(value.type.dtype, narrowest);
    for (const Node& inner : body.nodes) note_bodies(inner, narrowest);
  }
}

}  // namespace

Tolerance tolerance_of(const Graph& graph, ValueId output) {
  DType narrowest = DType::kF64;
  std::vector<char> needed(graph.values.size(), 0);
  needed[output] = 1;
  for (ValueId v = static_cast<ValueId>(graph.values.size()) - 1; v >= 0; --v) {
    if (!needed[v]) continue;
    note_dtype(graph.dtype(v), narrowest);
    if (const Node* node = graph.def(v)) {
      note_bodies(*node, narrowest);
      for (ValueId x : node->inputs) needed[x] = 1;
    }
  }
  switch (narrowest) {
    case DType::kF64:
      return {1e-6, 1e-9};
    case DType::kF16:
      return {2e-2, 2e-2};  // several ops, each rounded to 11 bits
    case DType::kBF16:
      return {8e-2, 8e-2};  // each rounded to 8 bits
    default:
      return {1e-3, 1e-4};
  }
}

}  // namespace quernel::testing
