#include "run_compiled.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "pipeline.h"
#include "quernel/runtime.hpp"

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

Expected<std::vector<Tensor>> run_compiled(const Graph& graph, const std::vector<Tensor>& inputs,
                                           const CompileOptions& options, unsigned threads) {
  char path[] = "/tmp/quernel-differential-XXXXXX";
  int file = mkstemp(path);
  if (file < 0) return internal_error("cannot make a temporary file");
  close(file);
  struct Remove {
    const char* path;
    ~Remove() { unlink(path); }
  } remove{path};
  QUERNEL_TRY(CompileReport report, compile_graphs({graph}, path, options));
  Bundle bundle;
  Device device;
  Session session;
  qnl_error error = {};
  qnl_bundle_options open_options = {};
  open_options.verify_weights = 1;
  if (bundle.open(path, &open_options, &error) != QNL_OK) return runtime_failure("open", error);
  if (device.open_cpu(threads, &error) != QNL_OK) return runtime_failure("device", error);
  if (session.create(bundle, device, nullptr, &error) != QNL_OK) return runtime_failure("create", error);
  for (size_t i = 0; i < inputs.size(); ++i) {
    qnl_tensor tensor = view_of(graph.values[graph.inputs[i]].name, inputs[i]);
    if (qnl_session_set_input(session.get(), &tensor, &error) != QNL_OK)
      return runtime_failure("set input", error);
  }
  if (qnl_session_run(session.get(), &error) != QNL_OK) return runtime_failure("run", error);
  std::vector<Tensor> outputs;
  for (const Graph::Output& output : graph.outputs) {
    qnl_tensor tensor = {};
    if (qnl_session_get(session.get(), QNL_OUTPUT, output.name.c_str(), &tensor, &error) != QNL_OK)
      return runtime_failure("get output", error);
    const uint8_t* data = static_cast<const uint8_t*>(tensor.data);
    outputs.push_back({static_cast<DType>(tensor.dtype),
                       {tensor.shape, tensor.shape + tensor.rank},
                       Bytes::own({data, data + tensor.bytes})});
  }
  return outputs;
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

}  // namespace quernel::testing
