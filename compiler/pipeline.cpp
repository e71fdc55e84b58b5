#include "pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "bundle/write_bundle.h"
#include "codegen/llvm/compile_kernels.h"
#include "frontends/onnx/import_model.h"
#include "frontends/text/import_text.h"
#include "graph/passes/passes.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "loop/passes.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "lower/lower.h"
#include "schedule/schedule.h"

namespace quernel {
namespace {

constexpr std::string_view kProducer = "quernel 0.1.0";

auto graph_pass(Expected<Graph> (*pass)(const Graph&)) {
  return [pass](const Graph& graph, const Target&) { return pass(graph); };
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Numbered files of --dump-dir.
class Dump {
 public:
  explicit Dump(const std::string& dir) : dir_(dir) {}
  Status write(const std::string& name, const std::string& text) {
    if (dir_.empty()) return {};
    std::error_code error;
    std::filesystem::create_directories(dir_, error);
    char number[16];
    std::snprintf(number, sizeof number, "%03d-", next_++);
    std::ofstream file(dir_ + "/" + number + name);
    if (!(file << text)) return invalid_input("cannot write to the dump directory '" + dir_ + "'");
    return {};
  }
  bool active() const { return !dir_.empty(); }

 private:
  std::string dir_;
  int next_ = 0;
};

bool should_verify(const CompileOptions& options) {
#ifdef NDEBUG
  return options.verify_each;
#else
  (void)options;
  return true;
#endif
}

}  // namespace

const std::vector<GraphPass>& graph_passes() {
  static const std::vector<GraphPass> passes = {
      {"fold-constants", "nodes with constant operands become constants", graph_pass(fold_constants)},
      {"eliminate-dead-nodes", "nodes that reach no output disappear", graph_pass(eliminate_dead_nodes)},
      {"merge-common-subexpressions", "equal nodes become one", graph_pass(merge_common_subexpressions)},
      {"simplify-algebra", "identities of arithmetic", graph_pass(simplify_algebra)},
      {"canonicalize-movement", "chains of movement ops become one", graph_pass(canonicalize_movement)},
      {"fold-scales-into-contractions", "batch normalisation moves into weights", graph_pass(fold_scales_into_contractions)},
      {"choose-channels-last", "convolutions and pools run channels-last", graph_pass(choose_channels_last)},
      {"canonicalize-movement-2", "permutes that met cancel", graph_pass(canonicalize_movement)},
      {"simplify-algebra-2", "identities that the layout uncovered", graph_pass(simplify_algebra)},
      {"compose-views", "movement chains that no named op can say become one index map", graph_pass(compose_views)},
      {"materialize-operands", "contraction operands become readable in place", schedule::materialize_operands, false},
      {"fold-constants-2", "constants in their new layout", graph_pass(fold_constants)},
      {"merge-common-subexpressions-2", "copies made twice become one", graph_pass(merge_common_subexpressions)},
  };
  return passes;
}

const std::vector<LoopPass>& loop_passes() {
  static const std::vector<LoopPass> passes = {
      {"simplify", "index arithmetic, branches and loops that ranges decide", loop::simplify},
      {"vectorize-loops", "vector axes become vector expressions", loop::vectorize_loops, false},
      {"unroll-loops", "unrolled axes become copies", loop::unroll_loops, false},
      {"simplify-2", "what the copies made constant", loop::simplify},
  };
  return passes;
}

Expected<Imported> import_model(const std::string& path, const CompileOptions& options) {
  if (path.size() > 3 && path.ends_with(".qg")) {
    QUERNEL_TRY(Graph graph, import_text(path));
    return Imported{std::move(graph), {}};
  }
  ImportOptions import_options;
  import_options.dims = options.dims;
  import_options.input_shapes = options.input_shapes;
  QUERNEL_TRY(ImportedModel model, import_onnx(path, import_options));
  return Imported{std::move(model.graph), std::move(model.notes)};
}

Expected<Graph> run_graph_passes(Graph graph, const Target& target, const CompileOptions& options) {
  Dump dump(options.dump_dir);
  QUERNEL_CHECK(verify(graph, "import"));
  if (dump.active()) QUERNEL_CHECK(dump.write("import.qg", print(graph, 64)));
  std::string last = contains(options.print_after, "changed") ? print(graph, 64) : std::string();
  for (const GraphPass& pass : graph_passes()) {
    if (pass.optional && contains(options.disabled_passes, pass.name)) continue;
    if (options.on_stage) options.on_stage(std::string(pass.name));
    QUERNEL_TRY(graph, pass.run(graph, target));
    if (should_verify(options)) QUERNEL_CHECK(verify(graph, std::string(pass.name)));
    if (dump.active()) QUERNEL_CHECK(dump.write(std::string(pass.name) + ".qg", print(graph, 64)));
    bool all = contains(options.print_after, "all"), changed = contains(options.print_after, "changed");
    if (all || changed || contains(options.print_after, pass.name)) {
      std::string text = print(graph, 64);
      if (!changed || text != last) std::fprintf(stderr, "// after %s\n%s", std::string(pass.name).c_str(), text.c_str());
      last = std::move(text);
    }
    if (options.stop_after == pass.name) break;
  }
  return graph;
}

Expected<bundle::CompiledVariant> compile_variant(const Graph& graph, const Target& target, const CompileOptions& options) {
  bundle::CompiledVariant variant;
  variant.target = target;
  QUERNEL_TRY(Graph optimized, run_graph_passes(graph, target, options));
  if (options.on_stage) options.on_stage("schedule");
  QUERNEL_TRY(variant.schedule, schedule::make_schedule(std::move(optimized), target));
  if (options.on_stage) options.on_stage("lower");
  // Equal kernels are emitted once: their text, without the name, is their identity.
  std::vector<loop::Kernel> kernels;
  std::unordered_map<std::string, int> known;
  std::string lowered_text;
  for (const schedule::Item& item : variant.schedule.items) {
    loop::Kernel kernel = lower::lower_item(variant.schedule, item, target);
    int64_t workgroups = 1;
    for (const loop::GridAxis& axis : kernel.grid) {
      int64_t extent = 1;
      QUERNEL_ASSERT(loop::as_const_int(axis.extent, &extent));
      workgroups *= extent;
    }
    variant.workgroups.push_back(workgroups);
    auto [it, fresh] = known.try_emplace(loop::to_string(kernel), static_cast<int>(kernels.size()));
    if (fresh) {
      kernel.name = std::string(to_string(variant.schedule.groups[item.group].kind)) + "_" + std::to_string(kernels.size());
      kernels.push_back(std::move(kernel));
    }
    variant.kernel_of_item.push_back(it->second);
  }
  Dump dump(options.dump_dir.empty() ? std::string() : options.dump_dir + "/" + target.name);
  if (dump.active()) {
    QUERNEL_CHECK(dump.write("schedule.txt", schedule::print(variant.schedule)));
    for (const loop::Kernel& kernel : kernels) lowered_text += loop::to_string(kernel);
    QUERNEL_CHECK(dump.write("lowered.loop", lowered_text));
  }
  for (const LoopPass& pass : loop_passes()) {
    if (pass.optional && contains(options.disabled_passes, pass.name)) continue;
    for (loop::Kernel& kernel : kernels) {
      pass.run(kernel);
      if (should_verify(options)) QUERNEL_CHECK(loop::verify(kernel));
    }
    if (dump.active()) {
      std::string text;
      for (const loop::Kernel& kernel : kernels) text += loop::to_string(kernel);
      QUERNEL_CHECK(dump.write(std::string(pass.name) + ".loop", text));
    }
  }
  if (options.on_stage) options.on_stage("code generation");
  codegen::CompileOptions codegen_options;
  codegen_options.threads = options.threads;
  if (dump.active()) codegen_options.dump_dir = options.dump_dir + "/" + target.name;
  QUERNEL_TRY(variant.image, codegen::compile_kernels(kernels, target, codegen_options));
  return variant;
}

Expected<CompileReport> compile_graph(const Graph& graph, const std::string& path, const CompileOptions& options) {
  CompileReport report;
  // Times the stages that the callbacks mark.
  CompileOptions timed = options;
  auto start = std::chrono::steady_clock::now();
  auto finish = [&] {
    if (!report.stages.empty()) report.stages.back().seconds = seconds_since(start);
  };
  timed.on_stage = [&](const std::string& stage) {
    finish();
    start = std::chrono::steady_clock::now();
    report.stages.push_back({stage, 0});
    if (options.on_stage) options.on_stage(stage);
  };
  std::vector<bundle::CompiledVariant> variants;
  for (const std::string& name : options.targets) {
    QUERNEL_TRY(Target target, find_target(name));
    QUERNEL_TRY(bundle::CompiledVariant variant, compile_variant(graph, target, timed));
    variants.push_back(std::move(variant));
  }
  timed.on_stage("write bundle");
  bundle::BundleContents contents = bundle::bundle_from_schedule(variants, std::string(kProducer));
  QUERNEL_TRY(bundle::BundleSizes sizes, bundle::write_bundle(contents, path));
  finish();
  report.file_bytes = sizes.file;
  report.code_bytes = sizes.code;
  report.constant_bytes = sizes.constants;
  report.workspace_bytes = static_cast<uint64_t>(variants[0].schedule.workspace_bytes);
  report.kernels = static_cast<int>(variants[0].image.kernel_names.size());
  report.dispatches = static_cast<int>(variants[0].schedule.items.size());
  return report;
}

Expected<CompileReport> compile(const std::string& model, const std::string& bundle, const CompileOptions& options) {
  if (options.on_stage) options.on_stage("import");
  auto start = std::chrono::steady_clock::now();
  QUERNEL_TRY(Imported imported, import_model(model, options));
  double import_seconds = seconds_since(start);
  QUERNEL_TRY(CompileReport report, compile_graph(imported.graph, bundle, options));
  report.stages.insert(report.stages.begin(), {"import", import_seconds});
  report.notes = std::move(imported.notes);
  return report;
}

Expected<std::vector<std::string>> check(const std::string& model, const CompileOptions& options) {
  QUERNEL_TRY(Imported imported, import_model(model, options));
  for (const std::string& name : options.targets) {
    QUERNEL_TRY(Target target, find_target(name));
    QUERNEL_TRY(Graph graph, run_graph_passes(imported.graph, target, options));
    QUERNEL_TRY(schedule::Schedule schedule, schedule::make_schedule(std::move(graph), target));
  }
  return imported.notes;
}

}  // namespace quernel
