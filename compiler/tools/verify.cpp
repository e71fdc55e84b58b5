// quernel verify: test directories (a model beside test_data_set_N) are compiled, run and compared.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <thread>

#include "child_pool.h"
#include "command.h"
#include "compile_flags.h"
#include "data_set.h"
#include "device_runner.h"
#include "json.h"
#include "print.h"
#include "scratch_dir.h"
#include "verdicts.h"
#include "verify_case.h"

namespace quernel::tools {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> dirs;
  CompileFlags flags;
  DeviceFlags place;
  run::DeviceChoice device;
  std::optional<double> precision_limit;  // per cent
  std::vector<std::string> allowed;       // by --allow-unsupported
  std::string json;
  int jobs = 0;
  double timeout = 120;
};

constexpr double kCleanUpSeconds = 30;  // to end a late run on a device

constexpr const char* verdict_text(Verdict verdict) {
  return verdict == Verdict::kPass ? "PASS" : verdict == Verdict::kFail ? "FAIL" : "UNSUPPORTED";
}

CaseResult from_child(const ChildResult& child) {
  if (!child.finished || child.text.empty())
    return {Verdict::kFail, child.finished ? "the case gave no result" : child.text};
  return {static_cast<Verdict>(child.text[0]), child.text.substr(1)};
}

int run(const Options& options) {
  if (run::is_auto(options.device.device))
    return usage_error("--device: expected cpu or vulkan, found '" + options.device.device +
                       "': it may run on either, so that nothing is verified of one");
  CompileFlags flags = options.flags;
  set_default_target(options.device, flags.targets);
  Expected<CompileOptions> compile_flags = compile_options(flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  Expected<std::vector<std::string>> cases = find_cases(options.dirs);
  if (!cases) return fail(cases.errors());
  ScratchDir scratch;
  if (scratch.path().empty())
    return fail(invalid_input("cannot create a temporary directory; set TMPDIR to a writable place"));

  InterruptGuard guard;
  std::unique_ptr<DeviceRunner> runner;
  if (options.place.on != "local" || !options.place.run_binary.empty()) {
    Expected<CodeKinds> code = code_of_targets(compile_flags->targets);
    if (!code) return fail(code.errors());
    Expected<std::unique_ptr<DeviceRunner>> opened =
        DeviceRunner::open(options.place, std::move(*code), scratch.path());
    if (!opened) return fail(opened.errors());
    runner = std::move(*opened);
  }

  int count = static_cast<int>(cases->size());
  ChildPool pool;
  pool.jobs =
      std::min(count, options.jobs > 0 ? options.jobs
                                       : std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  // A run on a device ends in time by itself, so that nothing goes on there.
  pool.timeout_seconds = options.timeout + (runner ? kCleanUpSeconds : 0);
  pool.scratch_dir = scratch.path();
  compile_flags->threads = pool.jobs > 1 ? 1 : 0;

  auto job = [&](int index) {
    CaseOptions case_options{
        *compile_flags,
        options.device,
        runner.get(),
        fmt::format("case-{}", index),
        fmt::format("{}/{}", scratch.path(), index),
        options.timeout,
        options.precision_limit ? std::optional(*options.precision_limit / 100) : std::nullopt};
    std::error_code error;
    fs::create_directory(case_options.scratch_dir, error);
    CaseResult result = verify_case((*cases)[static_cast<size_t>(index)], case_options);
    if (runner) runner->transport().remove(case_options.folder);
    return static_cast<char>(result.verdict) + result.reason;
  };
  Verdicts verdicts(options.allowed);
  Json::Array results;
  bool complete = pool.run(count, job, [&](int index, const ChildResult& child) {
    CaseResult result = from_child(child);
    std::string name = file_name((*cases)[static_cast<size_t>(index)]);
    verdicts.add(verdict_text(result.verdict), name);
    print("{} {}: {}\n", verdict_text(result.verdict), name, result.reason);
    std::fflush(stdout);
    results.push_back(Json::Object{{"name", name},
                                   {"verdict", verdict_text(result.verdict)},
                                   {"reason", result.reason},
                                   {"seconds", child.seconds}});
    std::error_code error;
    fs::remove_all(fmt::format("{}/{}", scratch.path(), index), error);
  });
  verdicts.print();
  if (!options.json.empty()) {
    Json document = Json::Object{{"passed", verdicts.passed},
                                 {"failed", verdicts.failed},
                                 {"unsupported", verdicts.unsupported},
                                 {"device", options.device.device},
                                 {"threads", static_cast<int>(options.device.threads)},
                                 {"cases", std::move(results)}};
    if (Status status = write_text_file(options.json, document.dump()); !status) return fail(status.errors());
  }
  if (Status status = runner ? runner->close() : Status(); !status) return fail(status.errors());
  if (!complete) return fail(invalid_input("interrupted"));
  return verdicts.exit_code();
}

}  // namespace

Action define_verify(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("DIR", options->dirs,
                 "directories with model.onnx or model.tflite and test_data_set_N, or parents of such")
      ->required();
  add_target_flags(app, options->flags);
  app.add_option("--precision-limit", options->precision_limit,
                 "with --precision, --weights or --activations: how much of its largest element an output "
                 "may be off by (default: "
                 "5 with f16, 10 with bf16, 15 where products are of bf16; 50 and 100 with weights of i8 and "
                 "i4; 10 and 75 with activations of i8 and i8:row)")
      ->type_name("PERCENT")
      ->check(CLI::Range(0.0, 100.0));
  add_tuning_flag(app, options->flags);
  add_model_flags(app, options->flags);
  add_choice_flags(app, options->flags);
  add_signature_flag(app, options->flags);
  add_run_flags(app, options->device);
  add_device_flags(app, options->place);
  app.add_option("--jobs", options->jobs, "cases at once (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("--timeout", options->timeout, "seconds that a case may take (default: 120)")
      ->type_name("S")
      ->check(CLI::PositiveNumber);
  add_allow_unsupported_flag(app, options->allowed);
  app.add_option("--json", options->json, "write the results to a file, too; - is stdout")->type_name("F");
  add_developer_flags(app, options->flags);
  app.footer(
      "Tolerances come from tolerance.json beside the model, else they are ONNX's. Prints a line per case: "
      "PASS, FAIL, or\n"
      "UNSUPPORTED when the compiler does not know how to do all that the model asks for. Exit status 0 when "
      "all passed.");
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
