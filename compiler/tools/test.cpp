// quernel test: bundles and models run their test vectors on a device; what they compute, how long it takes
// and what memory it needs is reported.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <thread>

#include "child_pool.h"
#include "command.h"
#include "compile_flags.h"
#include "data_set.h"
#include "json.h"
#include "junit.h"
#include "print.h"
#include "scratch_dir.h"
#include "targets/target.h"
#include "test_case.h"
#include "timing.h"
#include "verdicts.h"

namespace quernel::tools {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> subjects;
  CompileFlags flags;
  DeviceFlags place;
  std::vector<std::string> allowed;  // by --allow-unsupported
  std::string json, junit;
  run::DeviceChoice device;
  int jobs = 1, repeat = 1;
  double timeout = 120;
  bool per_kernel = false;
};

constexpr double kCleanUpSeconds = 30;  // to end a late run on a device
constexpr int kRunsOfACase = 3;         // at most, beside compiling: vectors, layers
constexpr size_t kKernelLines = 20;     // of --per-kernel

// Bundles and model files themselves, the cases of directories.
Expected<std::vector<TestSubject>> find_subjects(const std::vector<std::string>& paths) {
  std::vector<TestSubject> subjects;
  for (const std::string& path : paths) {
    std::error_code error;
    if (is_bundle(path)) {
      subjects.push_back({file_name(path), path, ""});
    } else if (fs::is_regular_file(path, error)) {
      subjects.push_back({file_name(path), "", path});
    } else {
      QUERNEL_TRY(std::vector<std::string> cases, find_cases({path}));
      for (const std::string& dir : cases) subjects.push_back({file_name(dir), "", dir + "/model.onnx"});
    }
  }
  return subjects;
}

// Whether the targets are firmware, which is a static library that runs on a board of its own; then the
// options must be such as mean something there.
Expected<bool> is_firmware(const Options& options, const std::vector<TestSubject>& subjects,
                           const CompileOptions& compile) {
  std::string name;
  for (const std::string& target : compile.targets) {
    QUERNEL_TRY(Target found, find_target(target));
    if (found.firmware) name = target;
  }
  if (name.empty()) return false;
  if (compile.targets.size() != 1)
    return invalid_input(
        fmt::format("expected one target where {} is among them, found {}", name, compile.targets.size()), {},
        "a board runs one model for one target");
  if (options.place.on != "qemu")
    return invalid_input(fmt::format("--on {}: target '{}' is firmware, which runs on an emulated board",
                                     options.place.on, name),
                         {}, "name it with --on qemu");
  if (!options.place.run_binary.empty() || options.device.threads != 1 || options.device.device != "cpu" ||
      options.repeat != 1 || options.per_kernel)
    return invalid_input(fmt::format("target '{}' is firmware, which runs without quernel-run", name), {},
                         "leave out --run-binary, --device, --threads, --repeat and --per-kernel");
  for (const TestSubject& subject : subjects)
    if (subject.model.empty())
      return invalid_input(fmt::format("target '{}' is firmware, a bundle holds none", name),
                           {.file = subject.bundle}, "name the model");
  return true;
}

Expected<CodeKinds> code_of(const std::vector<TestSubject>& subjects, const CompileOptions& compile) {
  CodeKinds code;
  for (const TestSubject& subject : subjects) {
    QUERNEL_TRY(CodeKinds more,
                subject.model.empty() ? code_of_bundle(subject.bundle) : code_of_targets(compile.targets));
    for (const CodeKind& kind : more) add_code(code, kind);
  }
  return code;
}

// Where cases run: one of these.
struct Place {
  std::unique_ptr<DeviceRunner> runner;
  std::unique_ptr<FirmwareBoard> board;
};

Expected<Place> open_place(const Options& options, const std::vector<TestSubject>& subjects,
                           const CompileOptions& compile, const std::string& scratch_dir) {
  Place place;
  QUERNEL_TRY(bool firmware, is_firmware(options, subjects, compile));
  if (firmware) {
    QUERNEL_TRY(place.board, FirmwareBoard::open(compile.targets[0], scratch_dir));
  } else {
    if (!options.flags.targets.empty())
      for (const TestSubject& subject : subjects)
        if (subject.model.empty())
          return invalid_input("--target: expected models, which are compiled for it, found a bundle",
                               {.file = subject.bundle},
                               "`quernel strip --target` makes one of its variants");
    QUERNEL_TRY(CodeKinds code, code_of(subjects, compile));
    QUERNEL_TRY(place.runner, DeviceRunner::open(options.place, std::move(code), scratch_dir));
  }
  return place;
}

Json result_of(const ChildResult& child) {
  std::string reason = child.finished ? "the case gave no result" : child.text;
  if (child.finished)
    if (Expected<Json> json = parse_json(child.text, "the case")) return *json;
  return Json::Object{{"verdict", "FAIL"}, {"reason", reason}};
}

const Json::Array& runs_of(const Json& result) {
  static const Json::Array kNone;
  const Json* runs = result.find("runs");
  return runs == nullptr ? kNone : runs->array();
}

double number(const Json& object, std::string_view name) {
  const Json* value = object.find(name);
  return value == nullptr ? 0 : value->number().value_or(0);
}

// "; cortex-m4, 11211080 instructions, 1.94 a multiply-add, workspace 156160 bytes, stack 264 of 264"
std::string firmware_figures(const Json& test) {
  double instructions = number(test, "instructions"), multiply_adds = number(test, "multiply_adds");
  std::string text = fmt::format("; {}, {:.0f} instructions", test.at("target").text(), instructions);
  if (multiply_adds > 0) text += fmt::format(", {:.2f} a multiply-add", instructions / multiply_adds);
  for (const Json& memory : test.at("memory").array())
    text += fmt::format(", {} {:.0f} of {:.0f} bytes", memory.at("name").text(), number(memory, "used_bytes"),
                        number(memory, "bytes"));
  return text;
}

// "; cortex-a72, 1.25 ms, peak 3.1 MB"
std::string figures(const Json& result) {
  for (const Json& run : runs_of(result))
    for (const Json& test : run.at("tests").array())
      if (test.find("instructions") != nullptr) return firmware_figures(test);
  double milliseconds = 0, peak = 0;
  int tests = 0;
  std::string target;
  for (const Json& run : runs_of(result)) {
    peak = std::max(peak, number(run, "peak_rss_bytes"));
    for (const Json& test : run.at("tests").array()) {
      target = test.at("target").text();
      milliseconds += number(test, "median_ms");
      ++tests;
    }
  }
  if (tests == 0 || target.empty()) return "";
  return fmt::format("; {}, {} a run, peak {}", target, format_seconds(milliseconds / tests * 1e-3),
                     format_bytes(static_cast<uint64_t>(peak)));
}

void print_layer(const Json& result) {
  const Json* layer = result.find("diverging_layer");
  if (layer == nullptr) return;
  if (layer->at("found").is_true())
    print("  first diverging layer: '{}' ({}): {}\n", layer->at("node").text(), layer->at("op").text(),
          layer->at("message").text());
  else
    print("  first diverging layer: {}\n", layer->at("message").text());
}

// The kernels of the first test vector of each bundle, the longest first.
void print_kernels(const Json& result) {
  for (const Json& run : runs_of(result)) {
    const Json::Array& items = run.at("tests").array()[0].at("items").array();
    std::vector<const Json*> order;
    double total = 0;
    for (const Json& item : items) {
      order.push_back(&item);
      total += number(item, "ms");
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const Json* a, const Json* b) { return number(*a, "ms") > number(*b, "ms"); });
    print("  {:>10}  {:>5}  {:<24} {}\n", "time", "share", "kernel", "first node");
    for (size_t i = 0; i < order.size() && i < kKernelLines; ++i)
      print("  {:>10}  {:>4.1f}%  {:<24} {}\n", format_seconds(number(*order[i], "ms") * 1e-3),
            total > 0 ? number(*order[i], "ms") / total * 100 : 0, order[i]->at("name").text(),
            order[i]->at("node").text());
    if (order.size() > kKernelLines) print("  … {} more\n", order.size() - kKernelLines);
  }
}

int run(const Options& options) {
  CompileFlags flags = options.flags;
  set_default_target(options.device, flags.targets);
  Expected<CompileOptions> compile_flags = compile_options(flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  Expected<std::vector<TestSubject>> subjects = find_subjects(options.subjects);
  if (!subjects) return fail(subjects.errors());
  ScratchDir scratch;
  if (scratch.path().empty())
    return fail(invalid_input("cannot create a temporary directory; set TMPDIR to a writable place"));
  InterruptGuard guard;
  Expected<Place> place = open_place(options, *subjects, *compile_flags, scratch.path());
  if (!place) return fail(place.errors());
  if (place->board) compile_flags->emit = Emit::kStatic;

  ChildPool pool;
  pool.jobs = std::min(static_cast<int>(subjects->size()), options.jobs);
  // A run on the device ends in time by itself, so that nothing goes on there.
  pool.timeout_seconds = options.timeout * kRunsOfACase + kCleanUpSeconds;
  pool.scratch_dir = scratch.path();
  compile_flags->threads = pool.jobs > 1 ? 1 : 0;
  auto job = [&](int index) {
    TestCaseOptions case_options{*compile_flags,
                                 place->runner.get(),
                                 place->board.get(),
                                 options.device,
                                 options.repeat,
                                 options.timeout,
                                 fmt::format("case-{}", index),
                                 fmt::format("{}/{}", scratch.path(), index)};
    std::error_code error;
    fs::create_directory(case_options.scratch_dir, error);
    Json result = run_test_case((*subjects)[static_cast<size_t>(index)], case_options);
    if (place->runner) place->runner->transport().remove(case_options.folder);
    return result.dump();
  };
  Verdicts verdicts(options.allowed);
  Json::Array results;
  bool complete = pool.run(static_cast<int>(subjects->size()), job, [&](int index, const ChildResult& child) {
    Json result = result_of(child);
    std::string verdict = result.at("verdict").text();
    const std::string& name = (*subjects)[static_cast<size_t>(index)].name;
    verdicts.add(verdict, name);
    print("{} {}: {}{}\n", verdict, name, result.at("reason").text(), figures(result));
    print_layer(result);
    if (options.per_kernel) print_kernels(result);
    std::fflush(stdout);
    result.set("name", name);
    result.set("seconds", child.seconds);
    results.push_back(std::move(result));
    std::error_code error;
    fs::remove_all(fmt::format("{}/{}", scratch.path(), index), error);
  });
  verdicts.print();
  Status closed = place->runner ? place->runner->close() : Status();
  if (!options.junit.empty())
    if (Status status = write_text_file(options.junit, junit_text(options.place.on, results)); !status)
      return fail(status.errors());
  if (!options.json.empty()) {
    Json document =
        Json::Object{{"on", options.place.on},          {"passed", verdicts.passed},
                     {"failed", verdicts.failed},       {"unsupported", verdicts.unsupported},
                     {"device", options.device.device}, {"threads", static_cast<int>(options.device.threads)},
                     {"cases", std::move(results)}};
    if (Status status = write_text_file(options.json, document.dump()); !status) return fail(status.errors());
  }
  if (!closed) return fail(closed.errors());
  if (!complete) return fail(invalid_input("interrupted"));
  return verdicts.exit_code();
}

}  // namespace

Action define_test(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("BUNDLE|MODEL|DIR", options->subjects,
                 "bundles that hold test vectors, models beside test_data_set_N, directories of such")
      ->required();
  add_device_flags(app, options->place);
  add_target_flags(app, options->flags);
  add_tuning_flag(app, options->flags);
  add_model_flags(app, options->flags);
  add_choice_flags(app, options->flags);
  add_run_flags(app, options->device);
  app.add_option("--repeat", options->repeat, "runs of each test vector, for its time (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--jobs", options->jobs, "cases at once (default: 1, so that times mean something)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_option("--timeout", options->timeout, "seconds that a bundle may run (default: 120)")
      ->type_name("S")
      ->check(CLI::PositiveNumber);
  add_allow_unsupported_flag(app, options->allowed);
  app.add_flag("--per-kernel", options->per_kernel, "print the time of each kernel");
  app.add_option("--json", options->json, "write everything to a file, too; - is stdout")->type_name("F");
  app.add_option("--junit", options->junit, "write the verdicts as JUnit XML to a file; - is stdout")
      ->type_name("F");
  add_developer_flags(app, options->flags);
  app.footer(
      "Firmware (--target cortex-m4 --on qemu) is built with the target's toolchain file and runs on an "
      "emulated board,\nwhich counts instructions and the memory that is used.\n"
      "Of a model that fails, each layer is compared with the interpreter on the operands that the device "
      "had.\nExit status 0 when all cases passed.");
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
