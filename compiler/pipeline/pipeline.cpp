#include "pipeline/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bundle/build_static_program.h"
#include "bundle/custom_kernels.h"
#include "bundle/write_static.h"
#include "codegen/llvm/file_hash.h"
#include "graph/multiply_adds.h"
#include "graph/passes/passes.h"
#include "graph/random_outputs.h"
#include "pipeline/check_options.h"
#include "pipeline/compile_code.h"
#include "pipeline/lower_variant.h"
#include "pipeline/write_forms.h"
#include "support/mapped_file.h"

namespace quernel {
namespace {

// Times stages: each ends where the next one begins.
class StageTimer {
 public:
  StageTimer(std::vector<StageTime>& stages, const std::function<void(const std::string&)>& also_told)
      : stages_(stages), also_told_(also_told) {}
  void begin(const std::string& stage) {
    end();
    stages_.push_back({stage, 0});
    start_ = std::chrono::steady_clock::now();
    if (also_told_) also_told_(stage);
  }
  void end() {
    if (!stages_.empty())
      stages_.back().seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::vector<StageTime>& stages_;
  const std::function<void(const std::string&)>& also_told_;
  std::chrono::steady_clock::time_point start_;
};

// With those that run on the companion CPU.
int item_count(const schedule::Schedule& schedule) {
  int count = 0;
  for (const schedule::Item& item : schedule.items)
    count += item.group >= 0 && schedule.groups[item.group].on_companion
                 ? item_count(schedule.groups[item.group].bodies[0])
                 : 1;
  return count;
}

void report_sizes(const bundle::CompiledVariant& variant, CompileReport& report) {
  report.kernels =
      static_cast<int>(variant.image.kernel_names.size() + variant.companion_image.kernel_names.size());
  for (const bundle::CompiledEntry& entry : variant.entries) {
    uint64_t workspace = 0;
    for (const schedule::Region& region : entry.schedule.regions)
      workspace += static_cast<uint64_t>(region.bytes.estimate());
    report.workspace_bytes = std::max(report.workspace_bytes, workspace);
    report.dispatches += item_count(entry.schedule);
  }
}

std::vector<std::string> precision_notes(const std::vector<Graph>& graphs, const CompileOptions& options) {
  std::vector<std::string> notes;
  double error = options.precision == DType::kF32 ? 0 : rounding_error(graphs, options.precision);
  if (error <= 0) return notes;
  char percent[16];
  std::snprintf(percent, sizeof percent, "%.2g", 100 * error);
  notes.push_back("large weights are stored in " + std::string(to_string(options.precision)) + ", off by " +
                  percent + " % (root mean square)");
  for (const std::string& name : options.targets) {
    Target target = *find_target(name);
    if (options.precision == DType::kF16 && !target.has_f16)
      notes.push_back("target " + name +
                      " has no instruction that widens f16: bf16 is several times faster there");
    if (target.multiplies(options.precision))
      notes.push_back("target " + name + " multiplies " + std::string(to_string(options.precision)) +
                      ": what large weights are multiplied with is rounded, too, sums are " +
                      (target.adds_f16 ? "f16 for 16 terms, then f32" : "f32"));
  }
  return notes;
}

// `data_bytes`: what workspace and states may take where that needs strips; 0: nothing is computed in strips.
Expected<CompileReport> compile_in(uint64_t data_bytes, const std::vector<Graph>& graphs,
                                   const std::string& path, const CompileOptions& options,
                                   const ModelFacts& facts, RamNeed& need) {
  QUERNEL_CHECK(check_pass_names(options));
  QUERNEL_CHECK(check_shared_states(graphs));
  QUERNEL_TRY(std::vector<Target> targets, targets_of(options));
  QUERNEL_CHECK(check_place_rules(graphs, targets, options));
  const bool is_program = options.emit != Emit::kBundle;
  std::string symbol_prefix;
  if (is_program) {
    QUERNEL_CHECK(bundle::check_static_name(bundle::static_name(path)));
    symbol_prefix = bundle::static_kernel_prefix(bundle::static_name(path));
  }
  schedule::Choices choices;
  if (!options.tuning_file.empty()) {
    QUERNEL_TRY(choices, schedule::Choices::read(options.tuning_file));
  }
  CompileReport report;
  report.stopped = !options.stop_after.empty();
  StageTimer timer(report.stages, options.on_stage);
  CompileOptions timed = options;
  timed.max_ram = data_bytes;
  timed.on_stage = [&](const std::string& stage) { timer.begin(stage); };
  std::vector<std::string> names;
  std::vector<bundle::CompiledVariant> variants;
  std::vector<loop::Kernel> c_kernels;
  for (const Target& target : targets) {
    names.push_back(target.name);
    if (report.stopped) {
      QUERNEL_CHECK(lower_variant(graphs, target, timed, &choices));
      continue;
    }
    QUERNEL_TRY(std::vector<std::string> notes,
                bundle::missing_custom_kernels(graphs, target, options.custom_ops));
    report.notes.insert(report.notes.end(), notes.begin(), notes.end());
    QUERNEL_TRY(CompiledCode code, compile_code(graphs, target, timed, &choices, symbol_prefix));
    report.notes.insert(report.notes.end(), code.notes.begin(), code.notes.end());
    variants.push_back(std::move(code.variant));
    c_kernels = std::move(code.kernels);
  }
  if (std::optional<std::string> note = choices.unused(names)) report.notes.push_back(std::move(*note));
  if (!report.stopped) {
    timer.begin("write " + name_of_form(options.emit));
    ModelFacts all_facts = facts;
    for (const Graph& graph : graphs) all_facts.multiply_adds.push_back(multiply_adds(graph).estimate());
    report.multiply_adds = all_facts.multiply_adds[0];
    switch (options.emit) {
      case Emit::kBundle:
        QUERNEL_CHECK(write_bundle_file(variants, path, all_facts, report));
        break;
      case Emit::kStatic:
        QUERNEL_CHECK(write_static_form(variants, path, options, all_facts, report, need));
        break;
      case Emit::kC:
        QUERNEL_CHECK(write_c_form(variants, c_kernels, path, options, all_facts, report, need));
        break;
    }
    report_sizes(variants[0], report);
  }
  timer.end();
  return report;
}

}  // namespace

Expected<CompileReport> compile_graphs(const std::vector<Graph>& graphs, const std::string& path,
                                       const CompileOptions& options, const ModelFacts& facts) {
  constexpr uint64_t kLargerStack = 64;  // than without strips
  RamNeed need;
  Expected<CompileReport> whole = compile_in(0, graphs, path, options, facts, need);
  const uint64_t beside = need.stack + kLargerStack;
  if (whole || options.max_ram == 0 || need.all <= options.max_ram || beside >= options.max_ram) return whole;
  return compile_in(options.max_ram - beside, graphs, path, options, facts, need);
}

Expected<bundle::CompiledVariant> compile_variant(const std::vector<Graph>& graphs, const Target& target,
                                                  const CompileOptions& options, schedule::Choices* choices) {
  QUERNEL_TRY(CompiledCode code, compile_code(graphs, target, options, choices, {}));
  return std::move(code.variant);
}

Expected<CompileReport> compile(const std::string& model, const std::string& output,
                                const CompileOptions& options) {
  std::vector<StageTime> stages;
  StageTimer timer(stages, options.on_stage);
  timer.begin("import");
  QUERNEL_TRY(std::vector<Imported> entries, import_entry_points(model, options));
  timer.end();
  release_all_pages();
  std::vector<Graph> graphs;
  for (Imported& entry : entries) graphs.push_back(std::move(entry.graph));
  ModelFacts facts;
  for (Imported& entry : entries) {
    if (entry.rounding) facts.rounding = entry.rounding;
    facts.scales.push_back(std::move(entry.scales));
    if (options.emit != Emit::kBundle) facts.sha256.push_back(codegen::sha256_of_file(entry.file));
    if (facts.scales.size() == 1) facts.about = std::move(entry.about);
  }
  QUERNEL_TRY(CompileReport report, compile_graphs(graphs, output, options, facts));
  report.stages.insert(report.stages.begin(), stages[0]);
  auto append = [](std::vector<std::string>& to, std::vector<std::string> from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (size_t i = 0; i < entries.size(); ++i) {
    append(report.notes, entries[i].notes);
    append(report.fixed_inputs, entries[i].fixed_inputs);
    append(report.fourier_outputs, entries[i].fourier_outputs);
    append(report.random_outputs, random_outputs(graphs[i]));
    for (QuantizedLayer& layer : entries[i].quantized)
      if (std::none_of(report.quantized.begin(), report.quantized.end(),
                       [&](const QuantizedLayer& known) { return known.name == layer.name; }))
        report.quantized.push_back(std::move(layer));
  }
  for (std::string& note : precision_notes(graphs, options)) report.notes.push_back(std::move(note));
  return report;
}

Expected<CheckReport> check(const std::string& model, const CompileOptions& options) {
  QUERNEL_CHECK(check_pass_names(options));
  QUERNEL_TRY(std::vector<Imported> entries, import_entry_points(model, options));
  CheckReport report;
  for (const std::string& name : options.targets) {
    QUERNEL_TRY(Target target, find_target(name));
    schedule::Packings packings;
    for (const Imported& entry : entries) {
      QUERNEL_TRY(Graph graph, run_graph_passes(entry.graph, target, options));
      if (has_pass(graph_passes(), options.stop_after)) continue;
      QUERNEL_TRY(schedule::Schedule schedule, make_schedule(std::move(graph), target, packings, options));
    }
  }
  for (const Imported& entry : entries)
    report.notes.insert(report.notes.end(), entry.notes.begin(), entry.notes.end());
  report.about = std::move(entries[0].about);
  return report;
}

Expected<std::vector<schedule::TunableKernel>> tunable_kernels(const std::string& model,
                                                               const CompileOptions& options) {
  QUERNEL_CHECK(check_pass_names(options));
  QUERNEL_TRY(std::vector<Imported> entries, import_entry_points(model, options));
  QUERNEL_TRY(Target target, find_target(options.targets[0]));
  schedule::Packings packings;
  std::vector<schedule::TunableKernel> result;
  for (Imported& entry : entries) {
    QUERNEL_TRY(Graph graph, run_graph_passes(std::move(entry.graph), target, options));
    QUERNEL_TRY(schedule::Schedule schedule, make_schedule(std::move(graph), target, packings, options));
    for (schedule::TunableKernel& c : schedule::tunable_kernels(schedule, target))
      result.push_back(std::move(c));
  }
  return result;
}

}  // namespace quernel
