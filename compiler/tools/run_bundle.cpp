#include "run_bundle.h"

#include <fmt/format.h>

#include <algorithm>

#include "command.h"
#include "quernel/runtime.hpp"

namespace quernel::tools {
namespace {

using tensor_file::HostTensor;
using Result = std::variant<std::vector<HostTensor>, RunFailure>;

std::vector<qnl_tensor> signature(const Bundle& bundle, qnl_tensor_role role) {
  std::vector<qnl_tensor> tensors;
  qnl_tensor tensor;
  for (uint32_t i = 0; qnl_bundle_get_tensor(bundle.get(), 0, role, i, &tensor) == QNL_OK; ++i)
    tensors.push_back(tensor);
  return tensors;
}

std::vector<qnl_tensor> signature_of(const std::string& path, qnl_tensor_role role, Bundle& bundle) {
  if (bundle.open(path.c_str(), nullptr, nullptr) != QNL_OK) return {};
  return signature(bundle, role);
}

RunFailure failure(const qnl_error& error) {
  return {error.status == QNL_CUSTOM_OP_MISSING,
          fmt::format("{}: {}", qnl_status_text(error.status), error.text)};
}

Result run_here(const RunRequest& request) {
  qnl_error error;
  Bundle bundle;
  run::OpenedDevice opened;
  Session session;
  if (bundle.open(request.bundle.c_str(), nullptr, &error) != QNL_OK ||
      opened.open(request.device, bundle, request.bundle, nullptr, &error) != QNL_OK ||
      session.create(bundle, opened.device, nullptr, &error) != QNL_OK)
    return failure(error);
  std::vector<const std::vector<HostTensor>*> runs;
  for (const std::vector<HostTensor>& inputs : request.earlier) runs.push_back(&inputs);
  runs.push_back(&request.inputs);
  for (const std::vector<HostTensor>* inputs : runs) {
    for (const HostTensor& host : *inputs) {
      qnl_tensor tensor = tensor_file::view_of(host);
      if (session.set_input(tensor, &error) != QNL_OK) {
        RunFailure failed = failure(error);
        failed.reason = fmt::format("input '{}': {}", host.name, failed.reason);
        return failed;
      }
    }
    if (session.run(&error) != QNL_OK) return failure(error);
  }
  std::vector<HostTensor> outputs;
  for (const qnl_tensor& output : signature(bundle, QNL_OUTPUT)) {
    qnl_tensor tensor;
    if (session.tensor(QNL_OUTPUT, output.name, &tensor, &error) != QNL_OK) return failure(error);
    outputs.push_back(tensor_file::to_host(tensor));
  }
  if (!opened.messages.empty())
    return RunFailure{false,
                      "the validation layers say: " + opened.messages.substr(0, opened.messages.find('\n'))};
  return outputs;
}

// A run by quernel-run, with inputs that are brought there, as far as the states that it leaves.
class RunThere {
 public:
  explicit RunThere(const RunRequest& request) : request_(request), device_(request.runner->transport()) {}

  Result operator()() {
    Expected<std::string> bundle = device_.put(request_.bundle, name(file_name(request_.bundle)), false);
    if (!bundle) return failed(bundle.errors());
    Bundle opened;
    std::vector<std::string> outputs;
    for (const qnl_tensor& t : signature_of(request_.bundle, QNL_OUTPUT, opened))
      outputs.emplace_back(t.name);
    // Each run of a sequence begins with the states of the one before.
    for (size_t i = 0; i < request_.earlier.size(); ++i) {
      std::vector<std::string> words = {*bundle, "--save-state", device_.place(name("state"))};
      if (i > 0) words.insert(words.end(), {"--load-state", device_.place(name("state"))});
      if (auto failure = start(std::move(words), request_.earlier[i])) return *failure;
    }
    std::vector<std::string> words = {*bundle};
    if (!request_.earlier.empty()) words.insert(words.end(), {"--load-state", device_.place(name("state"))});
    for (size_t i = 0; i < outputs.size(); ++i)
      words.insert(words.end(), {"--output", outputs[i] + "=" + device_.place(output(i))});
    if (auto failure = start(std::move(words), request_.inputs)) return *failure;
    std::vector<HostTensor> tensors(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      Expected<std::string> here = device_.get(output(i));
      if (!here) return failed(here.errors());
      if (tensor_file::Error error = tensor_file::read_pb(*here, &tensors[i]))
        return RunFailure{false, "the runner's output: " + *error};
      tensors[i].name = outputs[i];
    }
    return tensors;
  }

 private:
  std::string name(const std::string& file) const { return request_.folder + "/" + file; }
  std::string output(size_t i) const { return name(fmt::format("output_{}.pb", i)); }
  static RunFailure failed(const Diagnostics& errors) { return RunFailure{false, errors[0].message}; }

  // Brings the inputs and runs.
  std::optional<RunFailure> start(std::vector<std::string> words, const std::vector<HostTensor>& inputs) {
    for (std::string& word : run_arguments(request_.device)) words.push_back(std::move(word));
    for (size_t i = 0; i < inputs.size(); ++i) {
      std::string file = fmt::format("input_{}.pb", i), here = request_.scratch_dir + "/" + file;
      if (tensor_file::Error error = tensor_file::write_pb(here, inputs[i])) return RunFailure{false, *error};
      Expected<std::string> there = device_.put(here, name(file), false);
      if (!there) return failed(there.errors());
      words.insert(words.end(), {"--input", inputs[i].name + "=" + *there});
    }
    ProcessResult done = request_.runner->run(words, {.output = "",
                                                      .errors = request_.scratch_dir + "/runner.log",
                                                      .timeout_seconds = request_.timeout_seconds});
    if (done.succeeded()) return std::nullopt;
    return RunFailure{done.last_words.find(qnl_status_text(QNL_CUSTOM_OP_MISSING)) != std::string::npos,
                      done.failure()};
  }

  const RunRequest& request_;
  Transport& device_;
};

}  // namespace

Result run_bundle(const RunRequest& request) {
  return request.runner == nullptr ? run_here(request) : RunThere(request)();
}

std::vector<BundleInput> inputs_of(const std::string& path) {
  Bundle bundle;
  std::vector<BundleInput> inputs;
  for (const qnl_tensor& t : signature_of(path, QNL_INPUT, bundle)) inputs.push_back({t.name, t.dtype});
  return inputs;
}

}  // namespace quernel::tools
