#include "pipeline/run_passes.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "graph/control.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "pipeline/reproducer.h"
#include "schedule/print_schedule.h"
#include "schedule/verify_schedule.h"
#include "support/file.h"
#include "support/mapped_file.h"

namespace quernel {
namespace {

bool should_verify(const CompileOptions& options) {
#ifdef NDEBUG
  return options.verify_each;
#else
  (void)options;
  return true;
#endif
}

// What the options ask for after a pass: files of --dump-dir, text of --print-after.
class PassOutput {
 public:
  // `print` gives the IR's text; it is called only where that is used.
  PassOutput(const CompileOptions& options, Dump& dump, std::string suffix,
             std::function<std::string()> print)
      : options_(options),
        dump_(dump),
        suffix_(std::move(suffix)),
        print_(std::move(print)),
        all_(is_named(options.print_after, "all")),
        changed_(is_named(options.print_after, "changed")) {
    if (changed_) last_ = print_();
  }
  Status after(std::string_view pass) {
    std::string name(pass);
    bool show = all_ || changed_ || is_named(options_.print_after, pass);
    if (!show && !dump_.active()) return {};
    std::string text = print_();
    if (dump_.active()) QUERNEL_CHECK(dump_.write(name + suffix_, text));
    if (show && (!changed_ || text != last_))
      std::fprintf(stderr, "// after %s\n%s", name.c_str(), text.c_str());
    last_ = std::move(text);
    return {};
  }

 private:
  const CompileOptions& options_;
  Dump& dump_;
  std::string suffix_;
  std::function<std::string()> print_;
  bool all_, changed_;
  std::string last_;
};

// `reproducer` gives the text of a golden test of the pass that runs. Weights that a pass has read go back to their
// file.
template <class Pass, class Run, class Reproducer>
Status run_each(const std::vector<const Pass*>& passes, const CompileOptions& options, PassOutput& output,
                Run run, Reproducer reproducer) {
  for (const Pass* pass : passes) {
    if (options.on_stage) options.on_stage(std::string(pass->name));
    QUERNEL_CHECK(with_reproducer(
        options.dump_dir, pass->name, [&] { return reproducer(pass->name); }, [&] { return run(*pass); }));
    QUERNEL_CHECK(output.after(pass->name));
    release_all_pages();
  }
  return {};
}

template <class Run>
Expected<Graph> run_on_bodies_too(const Run& run, const Graph& graph, const Target& target) {
  QUERNEL_TRY(Graph result, run(graph, target));
  if (std::none_of(result.nodes.begin(), result.nodes.end(),
                   [](const Node& node) { return is_control(node.op); }))
    return result;
  Target inside = target;  // of loops and branches, which run on one processor
  inside.companion = nullptr;
  return transform_bodies(std::move(result), [&](const Node& node, const Graph& body) {
    return run_on_bodies_too(run, body, node.op == OpKind::k_on_companion ? *target.companion : inside);
  });
}

// What a runtime can be given and give.
Status check_interface(const Graph& graph) {
  constexpr size_t kMaxRank = 8;
  Diagnostics errors;
  auto check_value = [&](const char* role, const std::string& name, ValueId v) {
    if (graph.shape(v).size() > kMaxRank)
      errors.push_back(unsupported(
          std::string(role) + " '" + name + "': expected rank up to 8, found " + to_string(graph.type(v)), {},
          "reshape it inside the model"));
  };
  for (ValueId v : graph.inputs) check_value("input", graph.values[v].name, v);
  for (const Graph::Output& output : graph.outputs) check_value("output", output.name, output.value);
  if (errors.empty()) return {};
  return errors;
}

}  // namespace

bool is_named(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status Dump::write(const std::string& name, const std::string& text) {
  if (dir_.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(dir_, error);
  char number[16];
  std::snprintf(number, sizeof number, "%03d-", next_++);
  if (!write_file(dir_ + "/" + number + name, text))
    return invalid_input("cannot write to the dump directory '" + dir_ + "'");
  return {};
}

std::string to_string(const std::vector<loop::Kernel*>& kernels) {
  std::string text;
  for (const loop::Kernel* kernel : kernels) text += loop::to_string(*kernel);
  return text;
}

Expected<Graph> run_passes(const std::vector<const GraphPass*>& passes, Graph graph, const Target& target,
                           const CompileOptions& options, Dump& dump, schedule::Choices* choices,
                           std::vector<std::string>* notes) {
  PassOutput output(options, dump, ".qg", [&] { return print(graph, kMostPrinted); });
  GraphPassState state(options, choices);
  auto run_pass = [&](const GraphPass& pass) -> Status {
    auto run = [&](const Graph& g, const Target& t) { return pass.run(g, t, options, state); };
    QUERNEL_TRY(Graph result, run_on_bodies_too(run, graph, target));
    if (should_verify(options)) QUERNEL_CHECK(verify(result, std::string(pass.name)));
    graph = std::move(result);
    return {};
  };
  QUERNEL_CHECK(run_each(passes, options, output, run_pass, [&](std::string_view pass) {
    return graph_reproducer("pass", pass, graph, target);
  }));
  if (notes && options.activations != DType::kF32)
    for (std::string& note : schedule::about_activations(state.activations, target))
      notes->push_back(std::move(note));
  return graph;
}

Status run_passes(const std::vector<const SchedulePass*>& passes, schedule::Schedule& schedule,
                  const Target& target, schedule::Packings& packings, const CompileOptions& options,
                  Dump& dump) {
  schedule::ScheduleBody schedule_body;
  auto run_step = [&](const SchedulePass& pass, schedule::Schedule& s, const Target& t,
                      schedule::Packings& p) -> Status {
    QUERNEL_CHECK(pass.run(s, t, p, schedule_body));
    return should_verify(options) ? schedule::verify(s, std::string(pass.name)) : Status();
  };
  schedule_body = [&](schedule::Schedule& body, const Target& t, schedule::Packings& p) -> Status {
    for (const SchedulePass* pass : passes) QUERNEL_CHECK(run_step(*pass, body, t, p));
    return {};
  };
  const Graph graph = schedule.graph;
  PassOutput output(options, dump, ".txt", [&] { return schedule::print(schedule); });
  return run_each(
      passes, options, output,
      [&](const SchedulePass& pass) { return run_step(pass, schedule, target, packings); },
      [&](std::string_view pass) { return graph_reproducer("stage", pass, graph, target); });
}

Status run_passes(const std::vector<const LoopPass*>& passes, const std::vector<loop::Kernel*>& kernels,
                  const CompileOptions& options, Dump& dump) {
  PassOutput output(options, dump, ".loop", [&] { return to_string(kernels); });
  loop::Kernel before;  // the pass that runs
  auto run_pass = [&](const LoopPass& pass) -> Status {
    for (loop::Kernel* kernel : kernels) {
      before = *kernel;
      pass.run(*kernel);
      if (should_verify(options)) QUERNEL_CHECK(loop::verify(*kernel));
    }
    return {};
  };
  return run_each(passes, options, output, run_pass, [&](std::string_view pass) {
    return loop_reproducer(pass, before.name, loop::to_string(before));
  });
}

Expected<std::vector<loop::SharedKernel>> run_passes(const std::vector<const ProgramPass*>& passes,
                                                     std::vector<loop::Kernel>& kernels,
                                                     const CompileOptions& options, Dump& dump) {
  auto print = [&] {
    std::string text;
    for (const loop::Kernel& kernel : kernels) text += loop::to_string(kernel);
    return text;
  };
  std::vector<loop::SharedKernel> calls(kernels.size());
  for (size_t k = 0; k < kernels.size(); ++k) calls[k].kernel = static_cast<int>(k);
  PassOutput output(options, dump, ".loop", print);
  std::string before;
  auto run_pass = [&](const ProgramPass& pass) -> Status {
    before = print();
    const std::vector<loop::SharedKernel> now = pass.run(kernels);
    for (loop::SharedKernel& call : calls) {
      const loop::SharedKernel& next = now[static_cast<size_t>(call.kernel)];
      call.kernel = next.kernel;
      call.arguments.insert(call.arguments.end(), next.arguments.begin(), next.arguments.end());
    }
    if (should_verify(options))
      for (const loop::Kernel& kernel : kernels) QUERNEL_CHECK(loop::verify(kernel));
    return {};
  };
  QUERNEL_CHECK(run_each(passes, options, output, run_pass,
                         [&](std::string_view pass) { return loop_reproducer(pass, pass, before); }));
  return calls;
}

Expected<schedule::Schedule> make_schedule(Graph graph, const Target& target, schedule::Packings& packings,
                                           const CompileOptions& options, const std::string& dump_dir) {
  std::vector<schedule::Region> regions;
  for (const MemoryOption& memory : options.memory)
    regions.push_back({memory.name, static_cast<int64_t>(memory.bytes), 0});
  schedule::Schedule schedule = schedule::empty_schedule(std::move(graph), std::move(regions));
  schedule.io_in_workspace = options.io_in_workspace;
  Dump dump(dump_dir);
  QUERNEL_CHECK(
      run_passes(selected_passes(schedule_passes(), options), schedule, target, packings, options, dump));
  return schedule;
}

Status run_loop_passes(const std::vector<loop::Kernel*>& kernels, const CompileOptions& options) {
  Dump none("");
  return run_passes(selected_passes(loop_passes(), options), kernels, options, none);
}

Expected<Graph> run_graph_passes(Graph graph, const Target& target, const CompileOptions& options,
                                 schedule::Choices* choices, std::vector<std::string>* notes) {
  Dump dump(options.dump_dir.empty() ? std::string() : options.dump_dir + "/" + target.name + "/graph");
  QUERNEL_CHECK(verify(graph, "import"));
  QUERNEL_CHECK(check_interface(graph));
  if (dump.active()) QUERNEL_CHECK(dump.write("import.qg", print(graph, kMostPrinted)));
  return run_passes(selected_passes(graph_passes(), options), std::move(graph), target, options, dump,
                    choices, notes);
}

}  // namespace quernel
