#include "device_runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "child_process.h"
#include "command.h"
#include "feature_names.h"
#include "find_run_binary.h"
#include "quernel/runtime.hpp"
#include "targets/target.h"

namespace quernel::tools {
namespace {

constexpr double kStartSeconds = 60;

bool holds(const CodeKinds& code, qnl_arch arch) {
  return std::any_of(code.begin(), code.end(), [&](const CodeKind& kind) { return kind.arch == arch; });
}

// What the device's quernel-run shall be built for.
Expected<qnl_arch> choose_arch(const DeviceFlags& flags, const CodeKinds& code,
                               std::optional<qnl_arch> device) {
  if (device) {
    // Whether there is a driver for it, opening the device tells.
    if (holds(code, *device) || holds(code, QNL_ARCH_SPIRV)) return *device;
    if (*device == QNL_ARCH_AARCH64 && holds(code, QNL_ARCH_ARM)) return QNL_ARCH_ARM;
    std::string names;
    for (const CodeKind& kind : code)
      names += (names.empty() ? "" : ", ") + std::string(arch_name(kind.arch));
    return invalid_input(fmt::format("--on {}: the device is {}, there is code for {} only", flags.on,
                                     arch_name(*device), names),
                         {}, "compile with a --target for it");
  }
  // A command does not say what it runs.
  if (std::optional<ProgramKind> kind = read_program_kind(flags.run_binary)) return kind->arch;
  return code[0].arch;
}

std::string version_text() {
  uint32_t v = qnl_runtime_version();
  return fmt::format("{}.{}.{}", v >> 16, v >> 8 & 255, v & 255);
}

}  // namespace

void add_device_flags(CLI::App& app, DeviceFlags& flags) {
  app.add_option("--on", flags.on, fmt::format("where to run: {} (default: local)", kOnHelp))
      ->type_name("WHERE");
  app.add_option("--run-binary", flags.run_binary,
                 "the quernel-run of that place (default: one is looked for by its architecture)")
      ->type_name("FILE");
}

void add_run_flags(CLI::App& app, run::DeviceChoice& device) {
  app.add_option("--device", device.device,
                 fmt::format("what runs kernels: {} (default: cpu)", run::kDeviceHelp))
      ->type_name("D")
      ->check([](const std::string& name) { return run::check_device_name(name); });
  app.add_option("--threads", device.threads, "threads that run kernels on the CPU (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  app.add_flag("--validation", device.validation,
               "with Vulkan's validation layers; a message of theirs is a failure");
  app.add_option("--pipeline-cache", device.pipeline_cache,
                 "file that keeps compiled pipelines of a Vulkan device")
      ->type_name("FILE");
  app.add_option(
         "--device-timeout", device.timeout_seconds,
         "seconds after which a Vulkan device that does not answer is given up (default: none; auto: 60)")
      ->type_name("S")
      ->check(CLI::PositiveNumber);
  app.add_option("--choice", device.choice_file,
                 "file that keeps what --device auto has decided (default: BUNDLE.choice)")
      ->type_name("FILE");
  app.add_flag("--choose-anew", device.choose_anew, "--device auto decides anew");
}

std::vector<std::string> run_arguments(const run::DeviceChoice& device) {
  std::vector<std::string> words = {"--threads", std::to_string(device.threads)};
  if (device.device != "cpu") words.insert(words.end(), {"--device", device.device});
  if (device.validation) words.push_back("--validation");
  if (!device.pipeline_cache.empty()) words.insert(words.end(), {"--pipeline-cache", device.pipeline_cache});
  if (device.timeout_seconds > 0)
    words.insert(words.end(), {"--device-timeout", fmt::format("{}", device.timeout_seconds)});
  if (!device.choice_file.empty()) words.insert(words.end(), {"--choice", device.choice_file});
  if (device.choose_anew) words.push_back("--choose-anew");
  return words;
}

void set_default_target(const run::DeviceChoice& device, std::vector<std::string>& targets) {
  if (targets.empty() && run::is_vulkan(device.device)) targets = {"vulkan"};
  if (targets.empty() && run::is_auto(device.device)) targets = {"native", "vulkan"};
}

Expected<std::unique_ptr<DeviceRunner>> DeviceRunner::open(const DeviceFlags& flags, CodeKinds code,
                                                           const std::string& scratch_dir) {
  std::unique_ptr<DeviceRunner> runner(new DeviceRunner);
  QUERNEL_TRY(runner->transport_, make_transport(flags.on, code, scratch_dir));
  Status status = runner->transport_->open();
  if (status) {
    runner->owner_ = getpid();
    status = runner->start(flags, code, scratch_dir);
  }
  if (status) return runner;
  Diagnostics errors = status.take_errors();
  if (InterruptGuard::interrupted()) errors = {invalid_input("interrupted")};  // whatever that made fail
  if (Status closed = runner->close(); !closed) errors.push_back(closed.errors()[0]);
  return errors;
}

Status DeviceRunner::start(const DeviceFlags& flags, const CodeKinds& code, const std::string& scratch_dir) {
  QUERNEL_TRY(qnl_arch arch, choose_arch(flags, code, transport_->arch()));
  QUERNEL_TRY(std::string binary,
              find_run_binary(flags.run_binary, arch,
                              transport_->is_remote() ? RunnerKind::kStatic : RunnerKind::kAny));
  QUERNEL_TRY(program_, transport_->put(binary, "quernel-run", true));
  std::string answer = scratch_dir + "/version", expected = fmt::format("quernel-run {}", version_text());
  ProcessResult done =
      run({"--version"},
          {.output = answer, .errors = scratch_dir + "/version.log", .timeout_seconds = kStartSeconds});
  if (!done.succeeded())
    return invalid_input(fmt::format("--on {}: quernel-run does not start: {}", flags.on, done.failure()),
                         {.file = binary});
  std::string found = last_line_of(answer);
  if (found != expected)
    return invalid_input(
        fmt::format("--on {}: expected {}, found '{}'", flags.on, expected, found.substr(0, 80)),
        {.file = binary}, "build it again");
  return {};
}

ProcessResult DeviceRunner::run(std::vector<std::string> arguments, const ProcessOptions& options) {
  arguments.insert(arguments.begin(), program_);
  return transport_->run(arguments, options);
}

Status DeviceRunner::close() {
  if (owner_ != getpid()) return {};
  owner_ = 0;
  return transport_->close();
}

DeviceRunner::~DeviceRunner() {
  if (Status status = close(); !status) (void)fail(status.errors());
}

void add_code(CodeKinds& code, const CodeKind& more) {
  for (CodeKind& kind : code)
    if (kind.arch == more.arch) return void(kind.features |= more.features);
  code.push_back(more);
}

Expected<CodeKinds> code_of_bundle(const std::string& path) {
  Bundle bundle;
  qnl_error error;
  if (bundle.open(path.c_str(), nullptr, &error) != QNL_OK)
    return invalid_input(fmt::format("{}: {}", qnl_status_text(error.status), error.text), {.file = path});
  CodeKinds code;
  qnl_variant_info variant;
  for (uint32_t v = 0; qnl_bundle_get_variant(bundle.get(), v, &variant) == QNL_OK; ++v)
    add_code(code, {variant.arch, variant.required_features});
  return code;
}

Expected<CodeKinds> code_of_targets(const std::vector<std::string>& targets) {
  CodeKinds code;
  for (const std::string& name : targets) {
    QUERNEL_TRY(Target target, find_target(name));
    add_code(code, {target.arch, target.required_features});
  }
  return code;
}

}  // namespace quernel::tools
