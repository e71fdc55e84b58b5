// quernel opt: runs passes on IR text (or on an imported model) and prints the result, which can be read
// back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "command.h"
#include "compile_flags.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "loop/parse.h"
#include "loop/verify.h"
#include "pipeline/pipeline.h"
#include "print.h"
#include "tensor_file.h"

namespace quernel::tools {
namespace {

struct Options {
  std::string input, output = "-", target = "native", start_from;
  std::vector<std::string> passes;
  CompileFlags flags;
  bool list = false, time_passes = false;
  int64_t elide = 0;
};

template <class Pass>
void print_list(const char* title, const std::vector<Pass>& passes) {
  print("{}\n", title);
  for (const Pass& pass : passes)
    print("  {:<32} {}{}\n", pass.name, pass.sentence, pass.optional ? "" : " (always runs)");
}

// The passes to run: those named, in that order, else all from --start-from to --stop-after.
template <class Pass>
Expected<std::vector<const Pass*>> select_passes(const std::vector<Pass>& all, const Options& options) {
  std::vector<std::string_view> legal;
  for (const Pass& pass : all) legal.push_back(pass.name);
  auto find = [&](const std::string& flag, const std::string& name) -> Expected<size_t> {
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i].name == name) return i;
    return unknown_pass(flag, name, legal);
  };
  std::vector<size_t> order;
  if (!options.passes.empty()) {
    for (const std::string& name : options.passes) {
      QUERNEL_TRY(size_t index, find("--passes", name));
      order.push_back(index);
    }
  } else {
    for (size_t i = 0; i < all.size(); ++i) order.push_back(i);
  }
  auto position = [&](size_t index) { return std::find(order.begin(), order.end(), index) - order.begin(); };
  if (!options.flags.stop_after.empty()) {
    QUERNEL_TRY(size_t last, find("--stop-after", options.flags.stop_after));
    order.resize(std::min<size_t>(order.size(), static_cast<size_t>(position(last)) + 1));
  }
  if (!options.start_from.empty()) {
    QUERNEL_TRY(size_t first, find("--start-from", options.start_from));
    order.erase(order.begin(), order.begin() + position(first));
  }
  std::vector<const Pass*> selected;
  for (const std::string& name : options.flags.disabled_passes) {
    QUERNEL_TRY([[maybe_unused]] size_t index, find("--disable-pass", name));
  }
  for (size_t index : order)
    if (!is_named(options.flags.disabled_passes, all[index].name)) selected.push_back(&all[index]);
  return selected;
}

template <class Pass>
Status check_passes(const std::vector<Pass>& all, const Options& options) {
  QUERNEL_TRY([[maybe_unused]] std::vector<const Pass*> passes, select_passes(all, options));
  return {};
}

// Prints the time of each pass when it is over, with --time-passes.
class PassTimer {
 public:
  explicit PassTimer(bool active) : active_(active) {}
  ~PassTimer() { begin(""); }
  void begin(const std::string& pass) {
    if (active_ && !pass_.empty()) print_note("{:>10.3f} ms  {}\n", (now_seconds() - start_) * 1e3, pass_);
    pass_ = pass, start_ = now_seconds();
  }

 private:
  bool active_;
  std::string pass_;
  double start_ = 0;
};

Expected<std::string> optimize_graph(const Options& options, CompileOptions compile_flags) {
  QUERNEL_TRY(std::vector<const GraphPass*> passes, select_passes(graph_passes(), options));
  QUERNEL_TRY(Target target, find_target(options.target));
  QUERNEL_TRY(Imported imported, import_model(options.input, compile_flags));
  QUERNEL_CHECK(verify(imported.graph, "import"));
  PassTimer timer(options.time_passes);
  compile_flags.on_stage = [&](const std::string& pass) { timer.begin(pass); };
  Dump none("");
  QUERNEL_TRY(Graph graph, run_passes(passes, std::move(imported.graph), target, compile_flags, none));
  return print(graph, options.elide);
}

Expected<std::string> optimize_kernels(const Options& options, CompileOptions compile_flags) {
  QUERNEL_TRY(std::vector<const LoopPass*> passes, select_passes(loop_passes(), options));
  std::vector<std::byte> bytes;
  if (tensor_file::Error error = tensor_file::read_file(options.input, &bytes)) return invalid_input(*error);
  QUERNEL_TRY(
      std::vector<loop::Kernel> kernels,
      loop::parse_kernels({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options.input));
  std::vector<loop::Kernel*> all;
  for (loop::Kernel& kernel : kernels) {
    QUERNEL_CHECK(loop::verify(kernel));
    all.push_back(&kernel);
  }
  PassTimer timer(options.time_passes);
  compile_flags.on_stage = [&](const std::string& pass) { timer.begin(pass); };
  Dump none("");
  QUERNEL_CHECK(run_passes(passes, all, compile_flags, none));
  return to_string(all);
}

int run(const Options& options) {
  if (options.list) {
    print_list("graph passes (.qg, .onnx, .tflite), in the pipeline's order", graph_passes());
    print_list("steps of scheduling (`quernel compile` runs them), in the pipeline's order",
               schedule_passes());
    print_list("loop passes (.loop), in the pipeline's order", loop_passes());
    print_list("passes over all kernels of a program (`quernel compile` runs them)", program_passes());
    return kOk;
  }
  if (options.input.empty()) return usage_error("opt: expected a file; `quernel opt --help` explains");
  // Names of passes are looked up in the list of the file's kind.
  CompileFlags model_flags = options.flags;
  model_flags.disabled_passes.clear();
  model_flags.stop_after.clear();
  Expected<CompileOptions> compile_flags = compile_options(model_flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  bool loops = options.input.ends_with(".loop");
  if (Status status = loops ? check_passes(loop_passes(), options) : check_passes(graph_passes(), options);
      !status)
    return fail(status.errors()), kUsage;
  compile_flags->verify_each = true;
  Expected<std::string> text =
      loops ? optimize_kernels(options, *compile_flags) : optimize_graph(options, *compile_flags);
  if (!text) return fail(text.errors());
  if (Status status = write_text_file(options.output, *text); !status) return fail(status.errors());
  return kOk;
}

}  // namespace

Action define_opt(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("FILE", options->input, "graph IR (.qg), loop IR (.loop), or a model");
  app.add_option("--passes", options->passes, "passes to run, in this order (default: all)")
      ->type_name("A,B,C")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_flag("--list", options->list, "print all passes");
  app.add_option("-o,--output", options->output, "where to write the result (default: stdout)")
      ->type_name("F");
  app.add_option("--start-from", options->start_from, "leave out the passes before this one")->type_name("P");
  app.add_option("--stop-after", options->flags.stop_after, "leave out the passes after this one")
      ->type_name("P");
  app.add_option("--disable-pass", options->flags.disabled_passes, "leave a pass out")
      ->type_name("P")
      ->allow_extra_args(false);
  app.add_option("--print-after", options->flags.print_after, "print the IR after a pass, to stderr")
      ->type_name("P|all|changed")
      ->allow_extra_args(false);
  app.add_flag("--time-passes", options->time_passes, "print the time of every pass, to stderr");
  app.add_option("--elide-constants", options->elide,
                 "do not print constants of more elements than this; the result cannot be read back")
      ->type_name("N");
  app.add_option("--target", options->target, "what graph passes choose layouts for (default: native)")
      ->type_name("T");
  add_shape_flags(app, options->flags);
  add_model_flags(app, options->flags);
  add_choice_flags(app, options->flags);
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
