#include "run_bundle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <sstream>

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
  Device device;
  Session session;
  if (bundle.open(request.bundle.c_str(), nullptr, &error) != QNL_OK ||
      device.open_cpu(static_cast<uint32_t>(request.threads), &error) != QNL_OK ||
      session.create(bundle, device, nullptr, &error) != QNL_OK)
    return failure(error);
  for (const HostTensor& host : request.inputs) {
    qnl_tensor tensor = {};
    tensor.name = host.name.c_str();
    tensor.dtype = host.dtype;
    tensor.rank = static_cast<uint32_t>(host.shape.size());
    std::copy(host.shape.begin(), host.shape.end(), tensor.shape);
    tensor.bytes = host.bytes.size();
    tensor.data = const_cast<std::byte*>(host.bytes.data());  // an input is only read
    if (session.set_input(tensor, &error) != QNL_OK) {
      RunFailure failed = failure(error);
      failed.reason = fmt::format("input '{}': {}", host.name, failed.reason);
      return failed;
    }
  }
  if (session.run(&error) != QNL_OK) return failure(error);
  std::vector<HostTensor> outputs;
  for (const qnl_tensor& output : signature(bundle, QNL_OUTPUT)) {
    qnl_tensor tensor;
    if (session.tensor(QNL_OUTPUT, output.name, &tensor, &error) != QNL_OK) return failure(error);
    HostTensor host;
    host.name = output.name;
    host.dtype = tensor.dtype;
    host.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    const auto* data = static_cast<const std::byte*>(tensor.data);
    if (tensor.bytes > 0) host.bytes.assign(data, data + tensor.bytes);
    outputs.push_back(std::move(host));
  }
  return outputs;
}

// Runs a command with its output in a file; it ends with this process. -> nothing when it succeeded
std::optional<std::string> run_command(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t parent = getpid(), child = fork();
  if (child < 0) return fmt::format("cannot start {}: {}", words[0], std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file >= 0) dup2(file, STDOUT_FILENO), dup2(file, STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    dprintf(STDERR_FILENO, "cannot start %s: %s\n", arguments[0], std::strerror(errno));
    _exit(127);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fmt::format("{}: {}", words[0], std::strerror(errno));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  std::vector<std::byte> bytes;
  std::string last;
  if (!tensor_file::read_file(log, &bytes)) {
    std::istringstream lines(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    for (std::string line; std::getline(lines, line);)
      if (!line.empty()) last = line;
  }
  std::string how = WIFSIGNALED(status) ? fmt::format("was killed by {}", strsignal(WTERMSIG(status)))
                                        : fmt::format("exited with {}", WEXITSTATUS(status));
  return fmt::format("{} {}{}{}", words[0], how, last.empty() ? "" : ": ", last);
}

Result run_elsewhere(const RunRequest& request) {
  std::istringstream stream(request.runner);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty()) return RunFailure{false, "expected a command that starts quernel-run, found blanks"};
  words.insert(words.end(), {request.bundle, "--threads", std::to_string(request.threads)});
  auto file = [&](const char* kind, size_t i) {
    return fmt::format("{}/{}_{}.pb", request.scratch_dir, kind, i);
  };
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    if (tensor_file::Error error = tensor_file::write_pb(file("input", i), request.inputs[i]))
      return RunFailure{false, *error};
    words.insert(words.end(), {"--input", request.inputs[i].name + "=" + file("input", i)});
  }
  Bundle bundle;
  std::vector<std::string> outputs;
  for (const qnl_tensor& t : signature_of(request.bundle, QNL_OUTPUT, bundle)) outputs.emplace_back(t.name);
  for (size_t i = 0; i < outputs.size(); ++i)
    words.insert(words.end(), {"--output", outputs[i] + "=" + file("output", i)});
  if (auto error = run_command(words, request.scratch_dir + "/runner.log"))
    return RunFailure{error->find(qnl_status_text(QNL_CUSTOM_OP_MISSING)) != std::string::npos, *error};
  std::vector<HostTensor> tensors(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (tensor_file::Error error = tensor_file::read_pb(file("output", i), &tensors[i]))
      return RunFailure{false, "the runner's output: " + *error};
    tensors[i].name = outputs[i];
  }
  return tensors;
}

}  // namespace

Result run_bundle(const RunRequest& request) {
  return request.runner.empty() ? run_here(request) : run_elsewhere(request);
}

std::vector<BundleInput> inputs_of(const std::string& path) {
  Bundle bundle;
  std::vector<BundleInput> inputs;
  for (const qnl_tensor& t : signature_of(path, QNL_INPUT, bundle)) inputs.push_back({t.name, t.dtype});
  return inputs;
}

}  // namespace quernel::tools
