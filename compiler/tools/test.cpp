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
#include "kit.h"
#include "kit_results.h"
#include "print.h"
#include "scratch_dir.h"
#include "targets/forms.h"
#include "targets/target.h"
#include "test_case.h"
#include "test_report.h"
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
  bool per_kernel = false, io_in_workspace = false;
  std::string kit, results;  // folder; file
  double kit_limit = 0;      // megabytes; 0: none
  std::optional<uint64_t> random_weights;
};

constexpr double kCleanUpSeconds = 30;  // to end a late run on a device
constexpr int kRunsOfACase = 3;         // at most, beside compiling: vectors, layers

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
      for (const std::string& dir : cases) subjects.push_back({file_name(dir), "", *model_in(dir)});
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
    if (found.bare_metal) name = target;
  }
  if (name.empty()) return false;
  if (name == kGenericC)
    return unsupported(fmt::format("target '{}': there is no machine code for it to be run", name), {},
                       "name a target with a board, such as cortex-m4");
  if (compile.targets.size() != 1)
    return invalid_input(
        fmt::format("expected one target where {} is among them, found {}", name, compile.targets.size()), {},
        "a board runs one model for one target");
  if (options.place.on != "qemu")
    return invalid_input(fmt::format("--on {}: target '{}' is firmware, which runs on an emulated board",
                                     options.place.on, name),
                         {}, "name it with --on qemu");
  if (!options.place.run_binary.empty() || options.device.threads != 1 || options.device.device != "cpu" ||
      options.repeat != 1)
    return invalid_input(fmt::format("target '{}' is firmware, which runs without quernel-run", name), {},
                         "leave out --run-binary, --device, --threads and --repeat");
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
    if (options.io_in_workspace)
      return invalid_input(
          "--io-in-workspace: expected a target that is firmware, found '" + compile.targets[0] + "'", {},
          "a bundle's inputs and outputs are the caller's");
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

// Whether options that mean something only where cases run now are left out, and those of a kit make sense.
Status check_kit_options(const Options& options) {
  if (options.flags.targets.empty())
    return invalid_input("--kit: expected --target, what the other machine runs", {},
                         "`quernel targets` lists them");
  bool elsewhere = options.place.on != "local" || !options.device.pipeline_cache.empty() ||
                   !options.device.choice_file.empty() || options.device.choose_anew;
  if (elsewhere || options.per_kernel || !options.json.empty() || !options.junit.empty())
    return invalid_input("--kit: nothing runs while a kit is made", {},
                         "leave out --on, --json, --junit, --per-kernel, --pipeline-cache, --choice and "
                         "--choose-anew");
  return {};
}

// Compiles and runs, or packs, the subjects, each in a process of its own. False: the user interrupted it.
class CaseRunner {
 public:
  CaseRunner(const Options& options, const std::vector<TestSubject>& subjects, CompileOptions compile,
             const Place& place, const std::string& scratch_dir)
      : options_(options),
        subjects_(subjects),
        compile_(std::move(compile)),
        place_(place),
        scratch_(scratch_dir) {
    pool_.jobs = std::min(static_cast<int>(subjects.size()), options.jobs);
    // A run on the device ends in time by itself, so that nothing goes on there.
    pool_.timeout_seconds = options.timeout * kRunsOfACase + kCleanUpSeconds;
    pool_.scratch_dir = scratch_dir;
    compile_.threads = pool_.jobs > 1 ? 1 : 0;
    if (place.board) compile_.emit = Emit::kStatic;
  }

  bool run(const std::function<void(const std::string& name, Json result, double seconds)>& done) const {
    auto job = [&](int index) { return run_case(index).dump(); };
    return pool_.run(static_cast<int>(subjects_.size()), job, [&](int index, const ChildResult& child) {
      done(subjects_[static_cast<size_t>(index)].name, result_of(child), child.seconds);
      std::error_code error;
      fs::remove_all(fmt::format("{}/{}", scratch_, index), error);
    });
  }

 private:
  Json run_case(int index) const {
    TestCaseOptions options;
    options.compile = compile_;
    options.runner = place_.runner.get();
    options.board = place_.board.get();
    options.device = options_.device;
    options.repeat = options_.repeat;
    options.per_kernel = options_.per_kernel;
    options.timeout_seconds = options_.timeout;
    options.folder = fmt::format("case-{}", index);
    options.scratch_dir = fmt::format("{}/{}", scratch_, index);
    options.packs = !options_.kit.empty();
    std::error_code error;
    fs::create_directory(options.scratch_dir, error);
    Json result = run_test_case(subjects_[static_cast<size_t>(index)], options);
    if (place_.runner) place_.runner->transport().remove(options.folder);
    return result;
  }

  const Options& options_;
  const std::vector<TestSubject>& subjects_;
  CompileOptions compile_;
  const Place& place_;
  std::string scratch_;
  ChildPool pool_;
};

int make_kit(const Options& options, const std::vector<TestSubject>& subjects, const CompileOptions& compile,
             const std::string& scratch_dir) {
  if (Status status = check_kit_options(options); !status) return fail(status.errors()), kUsage;
  Expected<bool> firmware = is_firmware(options, subjects, compile);
  if (!firmware) return fail(firmware.errors());
  for (const TestSubject& subject : subjects)
    if (options.random_weights && subject.model.empty())
      return fail(
          invalid_input("--random-weights: expected a model, found a bundle", {.file = subject.bundle}));
  Expected<CodeKinds> code = code_of(subjects, compile);
  if (!code) return fail(code.errors());
  Expected<KitBuilder> kit = KitBuilder::open(
      {options.kit, compile.targets, options.device, options.place.run_binary, *code, options.repeat,
       options.timeout, static_cast<uint64_t>(options.kit_limit * 1e6), options.random_weights});
  if (!kit) return fail(kit.errors());
  Verdicts verdicts(options.allowed);
  Status status;
  Place nowhere;
  CaseRunner cases(options, subjects, compile, nowhere, scratch_dir);
  bool complete = cases.run([&](const std::string& name, const Json& result, double) {
    std::vector<std::string> bundles;
    for (const Json& bundle : result.at("bundles").array()) bundles.push_back(bundle.text());
    if (!status) return;
    Expected<bool> packed = kit->add(name, bundles, result);
    if (!packed)
      status = packed.take_errors();
    else
      verdicts.add(*packed ? "PASS" : bundles.empty() ? result.at("verdict").text() : "UNSUPPORTED", name);
    std::fflush(stdout);
  });
  if (!complete) return fail(invalid_input("interrupted"));
  if (status) status = kit->finish();
  if (!status) return fail(status.errors());
  return verdicts.exit_code();
}

// Options of a run, which has been.
bool has_run_options(const Options& options) {
  return !options.flags.targets.empty() || options.place.on != "local" || !options.place.run_binary.empty() ||
         options.device.device != "cpu" || options.device.threads != 1 || options.repeat != 1 ||
         options.random_weights || options.kit_limit > 0;
}

int report_results(const Options& options) {
  Expected<KitResults> results = read_kit_results(options.results, options.kit);
  if (!results) return fail(results.errors());
  const Json& contents = results->kit.contents;
  if (!results->machine.empty()) print_note("quernel test: {}\n", results->machine);
  TestReport report({options.allowed, options.per_kernel, options.json, options.junit});
  for (const Json& kit_case : contents.at("cases").array()) {
    double seconds = 0;
    Json result = result_of_kit_case(*results, kit_case, &seconds);
    report.add(kit_case.at("name").text(), std::move(result), seconds);
  }
  Status status = report.finish("kit", {{"device", contents.at("device")},
                                        {"threads", contents.at("threads")},
                                        {"kit", results->kit.id},
                                        {"targets", contents.at("targets")},
                                        {"machine", results->machine_facts}});
  if (!status) return fail(status.errors());
  return report.exit_code();
}

int run(const Options& options) {
  if (!options.results.empty()) {
    if (!options.subjects.empty())
      return usage_error("--results: expected no models, which the kit names, found '" + options.subjects[0] +
                         "'");
    if (has_run_options(options))
      return usage_error(
          "--results: the tests have run: leave out --target, --on, --run-binary, --device, "
          "--threads, --repeat, --random-weights and --kit-limit");
    return report_results(options);
  }
  if (options.subjects.empty())
    return usage_error("expected bundles, models or folders to test, or --results");
  if (!options.kit.empty() && options.io_in_workspace)
    return usage_error("--io-in-workspace: expected no --kit, which holds bundles");
  if (options.kit.empty() && (options.random_weights || options.kit_limit > 0))
    return usage_error("--random-weights and --kit-limit: expected --kit, too");
  CompileFlags flags = options.flags;
  if (options.kit.empty()) set_default_target(options.device, flags.targets);
  Expected<CompileOptions> compile = compile_options(flags);
  if (!compile) return fail(compile.errors()), kUsage;
  compile->random_weights = options.random_weights;
  compile->io_in_workspace = options.io_in_workspace;
  Expected<std::vector<TestSubject>> subjects = find_subjects(options.subjects);
  if (!subjects) return fail(subjects.errors());
  ScratchDir scratch;
  if (scratch.path().empty())
    return fail(invalid_input("cannot create a temporary directory; set TMPDIR to a writable place"));
  InterruptGuard guard;
  if (!options.kit.empty()) return make_kit(options, *subjects, *compile, scratch.path());
  Expected<Place> place = open_place(options, *subjects, *compile, scratch.path());
  if (!place) return fail(place.errors());

  TestReport report({options.allowed, options.per_kernel, options.json, options.junit});
  CaseRunner cases(options, *subjects, *compile, *place, scratch.path());
  bool complete = cases.run([&](const std::string& name, Json result, double seconds) {
    report.add(name, std::move(result), seconds);
  });
  Status closed = place->runner ? place->runner->close() : Status();
  Status written = report.finish(options.place.on, {{"device", options.device.device},
                                                    {"threads", static_cast<int>(options.device.threads)}});
  if (!written) return fail(written.errors());
  if (!closed) return fail(closed.errors());
  if (!complete) return fail(invalid_input("interrupted"));
  return report.exit_code();
}

}  // namespace

Action define_test(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("BUNDLE|MODEL|DIR", options->subjects,
                 "bundles that hold test vectors, models beside test_data_set_N, directories of such");
  add_device_flags(app, options->place);
  add_target_flags(app, options->flags);
  add_tuning_flag(app, options->flags);
  add_model_flags(app, options->flags);
  add_choice_flags(app, options->flags);
  add_signature_flag(app, options->flags);
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
  app.add_flag("--io-in-workspace", options->io_in_workspace,
               "of firmware: inputs and outputs are in the workspace, as `quernel compile` puts them");
  app.add_flag("--per-kernel", options->per_kernel,
               "print the time of each kernel; of firmware, its instructions");
  app.add_option("--json", options->json, "write everything to a file, too; - is stdout")->type_name("F");
  app.add_option("--junit", options->junit, "write the verdicts as JUnit XML to a file; - is stdout")
      ->type_name("F");
  app.add_option(
         "--kit", options->kit,
         "make a folder with the tests and quernel-run, for a machine that cannot be reached from here; "
         "its run.sh writes results.json")
      ->type_name("FOLDER");
  app.add_option(
         "--results", options->results,
         "report what that file says, as if the tests had run now (with --kit: only if it is of that kit)")
      ->type_name("FILE");
  app.add_option("--kit-limit", options->kit_limit,
                 "megabytes that a kit may have; cases beyond are left out")
      ->type_name("MB")
      ->check(CLI::PositiveNumber);
  app.add_option(
         "--random-weights", options->random_weights,
         "with --kit: random numbers of this seed instead of large weights, so that they need not travel; "
         "what outputs have to be, this machine computes")
      ->type_name("SEED");
  add_developer_flags(app, options->flags);
  app.footer(
      "Firmware (--target cortex-m4 --on qemu) is built with the target's toolchain file and runs on an "
      "emulated board,\nwhich counts instructions and the memory that is used.\n"
      "Of a model that fails, each layer is compared with the interpreter on the operands that the device "
      "had.\nExit status 0 when all cases passed.");
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
