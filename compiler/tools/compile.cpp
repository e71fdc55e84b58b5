// quernel compile: a model file becomes a bundle, a static library, or C.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>

#include "command.h"
#include "compile_flags.h"
#include "json.h"
#include "print.h"
#include "quernel/compiler.h"
#include "scratch_dir.h"
#include "support/progress.h"
#include "targets/forms.h"
#include "test_vectors.h"

namespace quernel::tools {
namespace {

struct Options {
  std::string model, output, emit, max_ram;
  std::vector<std::string> memory;
  bool io_in_workspace = false;
  CompileFlags flags;
  int threads = 0;
  bool time_passes = false, json = false, quiet = false;
  std::string tests;  // the folder with data sets to store; kBeside: that of the model; empty: none
};

constexpr const char* kBeside = "beside the model";

// Compiles; with --embed-tests the bundle appears when it has its test vectors.
Expected<CompileReport> compile_with_tests(const Options& options, const CompileOptions& compile_options) {
  bool stops = !compile_options.stop_after.empty();
  if (options.tests.empty() || stops) return compile(options.model, options.output, compile_options);
  namespace fs = std::filesystem;
  std::string dir = options.tests == kBeside ? fs::path(options.model).parent_path().string() : options.tests;
  std::string beside = fs::path(options.output).parent_path().string();
  ScratchDir scratch(beside.empty() ? "." : beside);
  if (scratch.path().empty())
    return invalid_input("cannot be written: no permission to create files in '" + beside + "'",
                         {.file = options.output});
  std::string plain = scratch.path() + "/plain.qnl";
  Expected<CompileReport> report = compile(options.model, plain, compile_options);
  Status status;
  if (report)
    status =
        embed_tests(dir.empty() ? "." : dir, options.model, compile_options, *report, plain, options.output);
  std::error_code error;
  if (!status) return status.take_errors();
  if (report) report->file_bytes = fs::file_size(options.output, error);
  return report;
}

// "12544 bytes (12.5 kB)": exact, for who has few.
std::string exact_bytes(uint64_t bytes) {
  return bytes < 1000 ? fmt::format("{} bytes", bytes)
                      : fmt::format("{} bytes ({})", bytes, format_bytes(bytes));
}

void print_static(const CompileReport& report, double seconds) {
  const StaticReport& program = *report.program;
  for (const std::string& file : program.files) print("{}\n", file);
  const bool knows_code = !program.estimated || report.code_bytes != 0;
  const char* about = !program.estimated ? ""
                      : knows_code       ? ", about, the C compiler decides"
                                         : ", and the code, of which the C compiler decides";
  print("  flash      {}{}\n", exact_bytes(report.constant_bytes + report.code_bytes), about);
  print("    constants  {}\n", exact_bytes(report.constant_bytes));
  print("    kernels    {}{} of them, {} calls\n", knows_code ? exact_bytes(program.kernel_bytes) + ", " : "",
        report.kernels, report.dispatches);
  if (knows_code) print("    overhead   {}\n", exact_bytes(program.overhead_bytes));
  bool inside = std::any_of(program.inputs.begin(), program.inputs.end(),
                            [](const StaticTensorReport& t) { return t.in_workspace; });
  print("  RAM, {} inputs and outputs\n", inside ? "with" : "beside");
  for (const MemoryUse& memory : program.memory)
    print("    {:<10} {}\n", memory.name, exact_bytes(memory.bytes));
  print("    stack      {} {}\n", knows_code ? program.estimated ? "about" : "at most" : "arrays of",
        exact_bytes(program.stack_bytes));
  if (!program.helpers.empty()) print("  helpers    {}\n", fmt::join(program.helpers, " "));
  print("  time       {}\n", format_seconds(seconds));
  for (const std::string& note : report.notes) print("  note       {}\n", note);
}

void print_summary(const Options& options, const CompileReport& report, double seconds) {
  if (report.program) return print_static(report, seconds);
  print("{}: {}\n", options.output, format_bytes(report.file_bytes));
  print("  constants  {}\n", format_bytes(report.constant_bytes));
  print("  code       {}, {} kernels, {} dispatches\n", format_bytes(report.code_bytes), report.kernels,
        report.dispatches);
  print("  workspace  {}\n", format_bytes(report.workspace_bytes));
  print("  time       {}\n", format_seconds(seconds));
  for (const std::string& note : report.notes) print("  note       {}\n", note);
}

void print_times(const CompileReport& report) {
  for (const StageTime& stage : report.stages)
    print_note("{:>10.1f} ms  {}\n", stage.seconds * 1e3, stage.name);
}

Json stopped_json(const Options& options, const CompileReport& report) {
  Json::Array notes;
  for (const std::string& note : report.notes) notes.push_back(note);
  return Json::Object{{"model", options.model},
                      {"bundle", Json()},
                      {"stopped_after", options.flags.stop_after},
                      {"notes", std::move(notes)}};
}

Json to_json(const Options& options, const CompileReport& report, double seconds) {
  Json::Array stages, notes, kernel_classes, layers;
  for (const std::string& kernel_class : report.kernel_classes) kernel_classes.push_back(kernel_class);
  for (const StageTime& stage : report.stages)
    stages.push_back(Json::Object{{"name", stage.name}, {"seconds", stage.seconds}});
  for (const QuantizedLayer& layer : report.quantized)
    layers.push_back(Json::Object{
        {"name", layer.name}, {"elements", layer.elements}, {"bits", layer.bits}, {"error", layer.error}});
  for (const std::string& note : report.notes) notes.push_back(note);
  Json program;
  if (report.program) {
    Json::Array files, helpers;
    Json::Object memory;
    for (const std::string& file : report.program->files) files.push_back(file);
    for (const std::string& helper : report.program->helpers) helpers.push_back(helper);
    for (const MemoryUse& use : report.program->memory) memory.emplace_back(use.name, use.bytes);
    program = Json::Object{{"files", std::move(files)},
                           {"estimated", report.program->estimated},
                           {"kernel_bytes", report.program->kernel_bytes},
                           {"overhead_bytes", report.program->overhead_bytes},
                           {"memory", std::move(memory)},
                           {"stack_bytes", report.program->stack_bytes},
                           {"helpers", std::move(helpers)}};
  }
  return Json::Object{{"model", options.model},
                      {"bundle", report.program ? Json() : Json(options.output)},
                      {"static", std::move(program)},
                      {"file_bytes", report.file_bytes},
                      {"constants_bytes", report.constant_bytes},
                      {"code_bytes", report.code_bytes},
                      {"workspace_bytes", report.workspace_bytes},
                      {"kernels", report.kernels},
                      {"kernel_classes", std::move(kernel_classes)},
                      {"dispatches", report.dispatches},
                      {"multiply_adds", report.multiply_adds},
                      {"seconds", seconds},
                      {"stages", std::move(stages)},
                      {"quantised_layers", std::move(layers)},
                      {"notes", std::move(notes)}};
}

// "256K", "1M" or "4096": bytes.
bool parse_bytes(std::string_view text, uint64_t* bytes) {
  uint64_t unit = text.ends_with('K') ? 1024 : text.ends_with('M') ? 1024 * 1024 : 1;
  if (unit != 1) text.remove_suffix(1);
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *bytes);
  if (code != std::errc() || end != text.data() + text.size() || *bytes == 0 || *bytes > UINT32_MAX)
    return false;
  *bytes *= unit;
  return true;
}

Status read_memory(const Options& options, CompileOptions& compile) {
  for (const std::string& text : options.memory)
    for (size_t begin = 0; begin <= text.size();) {
      size_t end = std::min(text.find(',', begin), text.size());
      std::string part = text.substr(begin, end - begin);
      size_t equals = std::min(part.find('='), part.size());
      MemoryOption memory{part.substr(0, equals), 0};
      if (memory.name.empty() || equals == part.size() ||
          !parse_bytes(part.substr(equals + 1), &memory.bytes))
        return invalid_input("--memory: expected NAME=SIZE,NAME=SIZE…, sizes as 4096, 256K or 1M, found '" +
                             text + "'");
      for (const MemoryOption& other : compile.memory)
        if (other.name == memory.name) return invalid_input("--memory: '" + memory.name + "' is there twice");
      compile.memory.push_back(std::move(memory));
      begin = end + 1;
    }
  if (!options.max_ram.empty() && !parse_bytes(options.max_ram, &compile.max_ram))
    return invalid_input("--max-ram: expected a size as 4096, 256K or 1M, found '" + options.max_ram + "'");
  compile.io_in_workspace = options.io_in_workspace;
  if (compile.emit == Emit::kBundle && options.io_in_workspace)
    return invalid_input(
        "--io-in-workspace is for --emit static and c: a bundle's inputs and outputs are the caller's");
  if (compile.emit == Emit::kBundle && (!compile.memory.empty() || compile.max_ram != 0))
    return invalid_input(
        "--memory and --max-ram are for --emit static and c: a bundle's memory is the runtime's");
  return {};
}

// A static library, or C, is named after the model where the output is a directory.
void complete_stem(Options& options) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = options.output;
  if (!path.has_filename() || fs::is_directory(path, error))
    options.output = (path / fs::path(options.model).stem()).string();
}

// C for the least x86-64 wants nothing of a processor that C does not.
constexpr const char* kPlainC = "x86-64";

int run(Options& options) {
  Expected<CompileOptions> compile_flags = compile_options(options.flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  const bool only_c = options.flags.targets == std::vector<std::string>{std::string(kGenericC)};
  if (options.emit.empty()) options.emit = only_c ? "c" : "bundle";
  if (options.emit == "static") compile_flags->emit = Emit::kStatic;
  if (options.emit == "c") compile_flags->emit = Emit::kC;
  if (options.emit == "c" && options.flags.targets.empty()) compile_flags->targets = {kPlainC};
  if (compile_flags->emit != Emit::kBundle) complete_stem(options);
  if (Status status = read_memory(options, *compile_flags); !status) return fail(status.errors()), kUsage;
  if (compile_flags->emit != Emit::kBundle && !options.tests.empty())
    return usage_error("--embed-tests: expected --emit bundle, found " + options.emit +
                       ": only a bundle has room for test vectors");
  if (Status status = check_output(options.model, options.output); !status) return fail(status.errors());

  bool show = !options.quiet && options.flags.print_after.empty();
  Progress progress("compiling " + file_name(options.model), show);
  compile_flags->threads = options.threads;
  compile_flags->on_stage = [&](const std::string& stage) { progress.stage(stage); };
  double start = now_seconds();
  Expected<CompileReport> report = compile_with_tests(options, *compile_flags);
  double seconds = now_seconds() - start;
  progress.finish();
  if (!report) return fail(report.errors());
  if (options.time_passes) print_times(*report);
  if (report->stopped) {
    if (options.json)
      fmt::print("{}", stopped_json(options, *report).dump());
    else if (!options.quiet)
      print("{}: stopped after {}; no bundle was written\n", options.model, options.flags.stop_after);
    return kOk;
  }
  if (options.json)
    fmt::print("{}", to_json(options, *report, seconds).dump());
  else if (!options.quiet)
    print_summary(options, *report, seconds);
  return kOk;
}

}  // namespace

Action define_compile(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model, "the model")->required();
  app.add_option(
         "-o,--output", options->output,
         "the bundle to write; of a static library or C what their files begin with, or the directory")
      ->required()
      ->type_name("OUT");
  app.add_option(
         "--emit", options->emit,
         "bundle: for the runtime; static: OUT.a, OUT.h and a CMake package, for firmware; c: the same as "
         "C99, OUT.c, OUT.h and others, without a --target for any machine (default: bundle; for generic-c: "
         "c)")
      ->type_name("FORM")
      ->check(CLI::IsMember({"bundle", "static", "c"}));
  app.add_option(
         "--memory", options->memory,
         "with --emit static or c: where the workspace may lie, fastest first; sizes as 4096, 256K or 1M")
      ->type_name("NAME=SIZE,…")
      ->allow_extra_args(false);
  app.add_option(
         "--max-ram", options->max_ram,
         "with --emit static or c: compute wide layers in strips where workspace, states and stack (of C: as "
         "estimated) together take more; fail where they do even then")
      ->type_name("SIZE");
  app.add_flag("--io-in-workspace", options->io_in_workspace,
               "with --emit static or c: inputs and outputs are in the workspace, too, where what is dead is "
               "overwritten; the header says where");
  add_target_flags(app, options->flags);
  add_tuning_flag(app, options->flags);
  add_shape_flags(app, options->flags);
  add_model_flags(app, options->flags);
  add_choice_flags(app, options->flags);
  add_entry_flags(app, options->flags);
  app.add_option("--threads", options->threads, "code generation threads (default: one per core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_flag(fmt::format("--embed-tests{{{}}}", kBeside), options->tests,
               "store the data sets beside the model, or in =DIR, as test vectors for `quernel test`");
  app.add_flag("--json", options->json, "print one JSON object instead of text");
  app.add_flag("-q,--quiet", options->quiet, "print nothing but diagnostics");
  add_developer_flags(app, options->flags);
  app.add_option("--stop-after", options->flags.stop_after, "end after a pass; no bundle is written")
      ->type_name("P")
      ->group("For developers");
  app.add_flag("--time-passes", options->time_passes, "print the time of every stage, to stderr")
      ->group("For developers");
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
