#include "run_compiled.h"
#include "graph/control.h"
#include "pipeline/pipeline.h"
#include "schedule/custom_call.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

Tensor tensor_of(const qnl_tensor& t) {
  const auto* data = static_cast<const uint8_t*>(t.data);
  return {static_cast<DType>(t.dtype),
          {t.shape, t.shape + t.rank},
          Bytes::own(t.bytes == 0 ? std::vector<uint8_t>() : std::vector<uint8_t>(data, data + t.bytes))};
}

// The device that runs the first target's code.
qnl_status open_for(const CompileOptions& options, unsigned threads, const qnl_vulkan_options* vulkan,
                    Device& companion, Device& device, qnl_error* error) {
#ifdef QUERNEL_WITH_VULKAN
  if (Expected<Target> target = find_target(options.targets[0]); target && target->is_gpu()) {
    if (qnl_status status = companion.open_cpu(threads, error); status != QNL_OK) return status;
    qnl_vulkan_options own = {};
    if (vulkan) own = *vulkan;
    own.companion = companion.get();
    return device.open_vulkan(&own, error);
  }
#endif
  (void)vulkan, (void)companion;
  return device.open_cpu(threads, error);
}

}  // namespace

// A function of the interpreter behind the runtime's interface.
struct CompiledGraph::Registered {
  std::string name, signature;
  CustomFunction function;

  static int32_t run(void* user, const qnl_custom_call* call) {
    const auto& self = *static_cast<const Registered*>(user);
    CustomOp op{self.name, call->attributes, {}};
    std::vector<Tensor> operands;
    std::vector<const Tensor*> pointers;
    for (uint32_t i = 0; i < call->input_count; ++i) operands.push_back(tensor_of(call->inputs[i]));
    for (const Tensor& operand : operands) pointers.push_back(&operand);
    for (uint32_t i = 0; i < call->output_count; ++i) {
      const qnl_tensor& t = call->outputs[i];
      op.results.push_back({static_cast<DType>(t.dtype), make_shape({t.shape, t.shape + t.rank})});
    }
    Expected<std::vector<Tensor>> results = self.function(op, pointers);
    if (!results) {
      std::snprintf(call->message, call->message_bytes, "%s", results.errors()[0].message.c_str());
      return 1;
    }
    for (size_t i = 0; i < results->size(); ++i) {
      const Bytes& bytes = (*results)[i].bytes;
      if (bytes.size() != call->outputs[i].bytes) return 2;
      if (bytes.size() != 0) std::memcpy(call->outputs[i].data, bytes.data(), bytes.size());
    }
    return 0;
  }
};

Expected<CompiledGraph> CompiledGraph::make(const Graph& graph, const CompileOptions& options,
                                            unsigned threads, const CustomFunctions& custom,
                                            const qnl_vulkan_options* vulkan) {
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
  if (open_for(options, threads, vulkan, compiled.host_, compiled.device_, &error) != QNL_OK)
    return runtime_failure("device", error);
  std::vector<qnl_custom_op> ops;
  auto add_ops = [&](const Graph& g, const auto& self) -> void {
    for (const Node& node : g.nodes) {
      if (is_control(node.op))
        for (const Graph& body : node.attributes.control->bodies) self(body, self);
      if (node.op != OpKind::k_custom || !custom.contains(node.attributes.custom->name)) continue;
      const std::string& name = node.attributes.custom->name;
      auto registered = std::make_shared<Registered>(
          Registered{name, schedule::custom_signature(g, node), custom.at(name)});
      ops.push_back({QNL_CUSTOM_OP_ABI_VERSION, registered->name.c_str(), registered->signature.c_str(),
                     Registered::run, registered.get()});
      compiled.registered_.push_back(std::move(registered));
    }
  };
  add_ops(graph, add_ops);
  qnl_session_options session_options = {};
  session_options.custom_ops = ops.data();
  session_options.custom_op_count = static_cast<uint32_t>(ops.size());
  if (compiled.session_.create(compiled.bundle_, compiled.device_, &session_options, &error) != QNL_OK)
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
    outputs.push_back(tensor_of(tensor));
  }
  return outputs;
}

Expected<std::vector<Tensor>> run_compiled(const Graph& graph, const std::vector<Tensor>& inputs,
                                           const CompileOptions& options, unsigned threads,
                                           const CustomFunctions& custom) {
  QUERNEL_TRY(CompiledGraph compiled, CompiledGraph::make(graph, options, threads, custom));
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

double largest_error(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    double error = 0, scale = 0;
    for (int64_t e = 0; e < want[i].count(); ++e) {
      double w = element_as_f64(want[i], e), difference = std::abs(element_as_f64(got[i], e) - w);
      error = std::isnan(difference) ? INFINITY : std::max(error, difference);
      scale = std::max(scale, std::abs(w));
    }
    worst = std::max(worst, error / scale);
  }
  return worst;
}

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

std::string differences(const Graph& graph, const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  std::string all;
  for (size_t i = 0; i < want.size(); ++i) {
    Tolerance t = tolerance_of(graph, graph.outputs[i].value);
    std::string problem = difference(got[i], want[i], t.rtol, t.atol);
    if (!problem.empty()) all += "output " + graph.outputs[i].name + ": " + problem + "\n";
  }
  return all;
}

std::pair<uint64_t, uint64_t> fuzz_seeds(uint64_t count) {
  unsigned long long first = 0, n = count;
  if (const char* text = std::getenv("QUERNEL_FUZZ_SEEDS")) std::sscanf(text, "%llu:%llu", &first, &n);
  return {first, n};
}

}  // namespace quernel::testing
