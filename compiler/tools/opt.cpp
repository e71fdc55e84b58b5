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
#include "loop/print.h"
#include "loop/verify.h"
#include "pipeline.h"
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

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

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
    if (!contains(options.flags.disabled_passes, all[index].name)) selected.push_back(&all[index]);
  return selected;
}

template <class Pass>
Status check_passes(const std::vector<Pass>& all, const Options& options) {
  QUERNEL_TRY([[maybe_unused]] std::vector<const Pass*> passes, select_passes(all, options));
  return {};
}

// Around every pass: times it, verifies what it made, prints it when asked to.
template <class Pass, class Run, class Print>
Status run_passes(const std::vector<const Pass*>& passes, const Options& options, Run run, Print print) {
  const std::vector<std::string>& print_after = options.flags.print_after;
  bool all = contains(print_after, "all"), changed = contains(print_after, "changed");
  std::string last = changed ? print() : std::string();
  for (const Pass* pass : passes) {
    double start = now_seconds();
    QUERNEL_CHECK(run(*pass));
    if (options.time_passes) print_note("{:>10.3f} ms  {}\n", (now_seconds() - start) * 1e3, pass->name);
    if (!all && !changed && !contains(print_after, pass->name)) continue;
    std::string text = print();
    if (!changed || text != last) print_note("// after {}\n", pass->name), std::fputs(text.c_str(), stderr);
    last = std::move(text);
  }
  return {};
}

Expected<std::string> optimize_graph(const Options& options, const CompileOptions& compile_flags) {
  QUERNEL_TRY(std::vector<const GraphPass*> passes, select_passes(graph_passes(), options));
  QUERNEL_TRY(Target target, find_target(options.target));
  QUERNEL_TRY(Imported imported, import_model(options.input, compile_flags));
  Graph graph = std::move(imported.graph);
  QUERNEL_CHECK(verify(graph, "import"));
  GraphPassState state(compile_flags);
  auto run = [&](const GraphPass& pass) -> Status {
    QUERNEL_TRY(graph, pass.run(graph, target, compile_flags, state));
    return verify(graph, std::string(pass.name));
  };
  auto print_graph = [&] { return print(graph, options.elide); };
  QUERNEL_CHECK(run_passes(passes, options, run, print_graph));
  return print_graph();
}

Expected<std::string> optimize_kernels(const Options& options) {
  QUERNEL_TRY(std::vector<const LoopPass*> passes, select_passes(loop_passes(), options));
  std::vector<std::byte> bytes;
  if (tensor_file::Error error = tensor_file::read_file(options.input, &bytes)) return invalid_input(*error);
  QUERNEL_TRY(
      std::vector<loop::Kernel> kernels,
      loop::parse_kernels({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, options.input));
  auto verify_all = [&]() -> Status {
    for (const loop::Kernel& kernel : kernels) QUERNEL_CHECK(loop::verify(kernel));
    return {};
  };
  QUERNEL_CHECK(verify_all());
  auto run = [&](const LoopPass& pass) -> Status {
    for (loop::Kernel& kernel : kernels) pass.run(kernel);
    return verify_all();
  };
  auto print_kernels = [&] {
    std::string text;
    for (const loop::Kernel& kernel : kernels) text += loop::to_string(kernel);
    return text;
  };
  QUERNEL_CHECK(run_passes(passes, options, run, print_kernels));
  return print_kernels();
}

int run(const Options& options) {
  if (options.list) {
    print_list("graph passes (.qg, .onnx), in the pipeline's order", graph_passes());
    print_list("loop passes (.loop), in the pipeline's order", loop_passes());
    return kOk;
  }
  if (options.input.empty()) return usage_error("opt: expected a file; `quernel opt --help` explains");
  CompileFlags shape_flags;
  shape_flags.dims = options.flags.dims;
  shape_flags.input_shapes = options.flags.input_shapes;
  shape_flags.input_values = options.flags.input_values;
  shape_flags.print_after = options.flags.print_after;
  Expected<CompileOptions> compile_flags = compile_options(shape_flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  bool loops = options.input.ends_with(".loop");
  if (Status status = loops ? check_passes(loop_passes(), options) : check_passes(graph_passes(), options);
      !status)
    return fail(status.errors()), kUsage;
  Expected<std::string> text = loops ? optimize_kernels(options) : optimize_graph(options, *compile_flags);
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
