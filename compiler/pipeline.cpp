// The pipeline; over 600 lines because it alone knows all stages, from graphs to files, and their order.
#include "pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "bundle/bundle_structure.h"
#include "bundle/custom_kernels.h"
#include "bundle/static_program.h"
#include "bundle/write_bundle.h"
#include "bundle/write_static.h"
#include "codegen/c/print_program.h"
#include "codegen/llvm/check_kernel.h"
#include "codegen/llvm/compile_kernels.h"
#include "codegen/llvm/static_archive.h"
#include "codegen/spirv/compile_shaders.h"
#include "graph/control.h"
#include "graph/multiply_adds.h"
#include "graph/passes/passes.h"
#include "graph/random_outputs.h"
#include "graph/text.h"
#include "graph/verify.h"
#include "loop/passes.h"
#include "loop/print.h"
#include "loop/verify.h"
#include "lower/lower.h"
#include "schedule/kernel_limits.h"
#include "schedule/schedule.h"
#include "schedule/sliding_windows.h"
#include "schedule/split_limits.h"
#include "support/edit_distance.h"
#include "support/file.h"
#include "targets/device_profile.h"

namespace quernel {
namespace {

constexpr std::string_view kProducer = "quernel 0.1.0";

auto graph_pass(Expected<Graph> (*pass)(const Graph&)) {
  return [pass](const Graph& graph, auto&&...) { return pass(graph); };
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
    if (!write_file(dir_ + "/" + number + name, text))
      return invalid_input("cannot write to the dump directory '" + dir_ + "'");
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
        all_(contains(options.print_after, "all")),
        changed_(contains(options.print_after, "changed")) {
    if (changed_) last_ = print_();
  }
  Status after(std::string_view pass) {
    std::string name(pass);
    bool show = all_ || changed_ || contains(options_.print_after, pass);
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

// Runs `run` for every pass that is not disabled, up to stop_after; all passes go through here.
template <class Pass, class Run>
Status run_passes(const std::vector<Pass>& passes, const CompileOptions& options, PassOutput& output,
                  Run run) {
  for (const Pass& pass : passes) {
    if (!pass.optional || !contains(options.disabled_passes, pass.name)) {
      if (options.on_stage) options.on_stage(std::string(pass.name));
      QUERNEL_CHECK(run(pass));
      QUERNEL_CHECK(output.after(pass.name));
    }
    if (options.stop_after == pass.name) break;
  }
  return {};
}

template <class Pass>
bool has_pass(const std::vector<Pass>& passes, std::string_view name) {
  return std::any_of(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
}

}  // namespace

// Of the 128 MiB that every Vulkan device's storage buffers hold; kernels pad weights to whole vectors.
constexpr int64_t kMostWeights = 120 << 20;

const std::vector<GraphPass>& graph_passes() {
  auto fold = [](const Graph& graph, auto&, auto&, GraphPassState& state) {
    return fold_constants(graph, state.folding);
  };
  static const std::vector<GraphPass> passes = {
      {"place-nodes", "a GPU's nodes that run on the processor beside it",
       [](const Graph& graph, const Target& target, const CompileOptions& options, auto&&) {
         return schedule::place_nodes(graph, target, options.place);
       }},
      {"form-integer-contractions", "contractions of 8-bit operands add up integers",
       [](const Graph& graph, const Target& target, auto&, GraphPassState& state) {
         std::optional<DType> activations;  // of the one sign that the target multiplies by i8
         if (target.has_dot_u8_s8 != target.has_dot_s8_s8)
           activations = target.has_dot_u8_s8 ? DType::kU8 : DType::kI8;
         return form_integer_contractions(graph, activations, &state.folding);
       }},
      {"fold-constants", "nodes with constant operands become constants", fold},
      {"eliminate-dead-nodes", "nodes that reach no output disappear", graph_pass(eliminate_dead_nodes)},
      {"simplify-control-flow", "loops and branches get and give what is needed",
       graph_pass(simplify_control_flow)},
      {"merge-common-subexpressions", "equal nodes become one", graph_pass(merge_common_subexpressions)},
      {"simplify-algebra", "identities of arithmetic", graph_pass(simplify_algebra)},
      {"expand-powers", "powers with common exponents become products and roots", graph_pass(expand_powers)},
      {"canonicalize-movement", "chains of movement ops become one", graph_pass(canonicalize_movement)},
      {"fold-scales-into-contractions", "batch normalisation moves into weights",
       graph_pass(fold_scales_into_contractions)},
      {"choose-channels-last", "convolutions and pools run channels-last",
       [](const Graph& graph, const Target& target, auto&&...) {
         return choose_channels_last(graph, schedule::staged_images(target));
       }},
      {"canonicalize-movement-2", "permutes that met cancel", graph_pass(canonicalize_movement)},
      {"simplify-algebra-2", "identities that the layout uncovered", graph_pass(simplify_algebra)},
      {"split-windows", "large windows of maxima go one dim after the other",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (target.is_gpu() || target.firmware) return graph;  // dispatches, and memory, are dear there
         return split_windows(graph);
       }},
      {"split-long-lines", "scans, ArgMax and sorts of long lines go block by block",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (target.firmware) return graph;  // one thread, and memory is dear
         return split_long_lines(graph, schedule::line_limits(target));
       }},
      {"split-long-scatters", "many updates of few places are combined in parts",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (target.firmware) return graph;  // one thread, and memory is dear
         return split_long_scatters(graph, schedule::scatter_limits(target));
       }},
      {"compose-views", "movement chains that no named op can say become one index map",
       graph_pass(compose_views)},
      {"split-long-contractions", "contractions over many terms go in parts, which workgroups share",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (target.firmware) return graph;  // one processor, and memory is dear
         return split_long_contractions(graph, schedule::contraction_limits(target));
       }},
      {"choose-winograd", "3x3 convolutions that Winograd's algorithm computes faster",
       [](const Graph& graph, const Target& target, const CompileOptions& options, GraphPassState& state) {
         return schedule::choose_winograd(graph, target, state.tilings, options.precision);
       }},
      {"round-operands", "with --precision bf16, where the target multiplies that: products of bf16",
       [](const Graph& graph, const Target& target, const CompileOptions& options, auto&&) {
         return schedule::round_operands(graph, target, options.precision);
       }},
      // What folds afterwards would be read otherwise than was planned here.
      {"materialize-operands", "contraction operands, constants folded, become readable in place",
       [](const Graph& graph, const Target& target, auto&, GraphPassState& state) -> Expected<Graph> {
         QUERNEL_TRY(Graph folded, fold_constants(graph, state.folding));
         return schedule::materialize_operands(folded, target);
       },
       false},
      {"fold-constants-2", "constants in their new layout", fold},
      {"narrow-weights", "with --precision: large weights are stored in f16 or bf16",
       [](const Graph& graph, auto&, auto& options, auto&&) {
         return narrow_weights(graph, options.precision);
       },
       false},
      {"split-weights", "for a GPU: weights that no storage buffer need hold become several",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (!target.is_gpu()) return graph;
         return split_weights(graph, kMostWeights);
       }},
      {"split-long-reductions", "reductions of many elements go in parts, which workgroups share",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (target.firmware) return graph;  // one processor, and memory is dear
         return split_long_reductions(graph, schedule::reduction_limits(target));
       }},
      {"split-long-cats", "cats of many operands are copied by several kernels, each of a few operands",
       [](const Graph& graph, auto&&...) { return split_long_cats(graph, schedule::kMostCatOperands); }},
      {"merge-common-subexpressions-2", "copies made twice become one",
       graph_pass(merge_common_subexpressions)},
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

Diagnostic unknown_pass(const std::string& option, const std::string& name,
                        const std::vector<std::string_view>& legal) {
  auto nearest = std::min_element(legal.begin(), legal.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
  std::string names;
  if (nearest != legal.end()) names = *nearest;
  for (auto it = legal.begin(); it != legal.end(); ++it)
    if (it != nearest) names += ", " + std::string(*it);
  return invalid_input(option + ": expected one of " + names + "; found '" + name + "'");
}

std::vector<std::string_view> optional_passes() {
  std::vector<std::string_view> names;
  for (const GraphPass& pass : graph_passes())
    if (pass.optional) names.push_back(pass.name);
  for (const LoopPass& pass : loop_passes())
    if (pass.optional) names.push_back(pass.name);
  names.push_back(kOptimizeCode);
  return names;
}

Status check_pass_names(const CompileOptions& options) {
  std::vector<std::string_view> all, optional = optional_passes();
  for (const GraphPass& pass : graph_passes()) all.push_back(pass.name);
  for (const LoopPass& pass : loop_passes()) all.push_back(pass.name);
  auto is_one_of = [](const std::vector<std::string_view>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& name : options.disabled_passes)
    if (!is_one_of(optional, name))
      return is_one_of(all, name)
                 ? invalid_input("--disable-pass: '" + name + "' always runs: later stages need it")
                 : unknown_pass("--disable-pass", name, optional);
  if (!options.stop_after.empty() && !is_one_of(all, options.stop_after))
    return unknown_pass("--stop-after", options.stop_after, all);
  all.insert(all.end(), {"all", "changed"});
  for (const std::string& name : options.print_after)
    if (!is_one_of(all, name)) return unknown_pass("--print-after", name, all);
  return {};
}

namespace {
template <class Run>
Expected<Graph> run_on_bodies_too(const Run& run, const Graph& graph, const Target& target) {
  QUERNEL_TRY(Graph result, run(graph, target));
  if (std::none_of(result.nodes.begin(), result.nodes.end(),
                   [](const Node& node) { return is_control(node.op); }))
    return result;
  Target inside = target;  // of loops and branches, which run on one processor
  inside.host = nullptr;
  return transform_bodies(std::move(result), [&](const Node& node, const Graph& body) {
    return run_on_bodies_too(run, body, node.op == OpKind::k_on_host ? *target.host : inside);
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

Expected<Graph> run_graph_passes(Graph graph, const Target& target, const CompileOptions& options,
                                 schedule::Tilings* tilings) {
  Dump dump(options.dump_dir.empty() ? std::string() : options.dump_dir + "/" + target.name + "/graph");
  QUERNEL_CHECK(verify(graph, "import"));
  QUERNEL_CHECK(check_interface(graph));
  if (dump.active()) QUERNEL_CHECK(dump.write("import.qg", print(graph, 64)));
  PassOutput output(options, dump, ".qg", [&] { return print(graph, 64); });
  GraphPassState state(options, tilings);
  QUERNEL_CHECK(run_passes(graph_passes(), options, output, [&](const GraphPass& pass) -> Status {
    auto run = [&](const Graph& g, const Target& t) { return pass.run(g, t, options, state); };
    QUERNEL_TRY(graph, run_on_bodies_too(run, graph, target));
    return should_verify(options) ? verify(graph, std::string(pass.name)) : Status();
  }));
  return graph;
}

namespace {

// Kernels of one processor, equal ones once.
struct KernelList {
  std::vector<loop::Kernel> kernels;
  std::unordered_map<std::string, int> known;  // by their text, without the name
};

struct Lowered {
  bundle::CompiledVariant variant;  // without its images
  // Of custom ops, the image's first kernels.
  std::vector<codegen::PrebuiltKernel> prebuilt;
  KernelList own, host;  // of the target, and of the processor beside it
  schedule::Packings packings;

  // The image's kernel of the custom op; -1 where it has none.
  int prebuilt_kernel(const std::string& op) const {
    for (size_t i = 0; i < prebuilt.size(); ++i)
      if (prebuilt[i].name == op) return static_cast<int>(i);
    return -1;
  }
};

// The items of a schedule and of the bodies in it, for the target or for the processor beside it.
std::vector<bundle::Dispatch> lower_items(const schedule::Schedule& schedule, Lowered& result,
                                          bool on_host = false) {
  const Target& target = on_host ? *result.variant.target.host : result.variant.target;
  std::vector<bundle::Dispatch> dispatches;
  for (const schedule::Item& item : schedule.items) {
    bundle::Dispatch& dispatch = dispatches.emplace_back();
    if (item.group < 0) continue;
    const schedule::Group& group = schedule.groups[item.group];
    if (group.kind == schedule::GroupKind::kCustom) {
      const Node& node = schedule.graph.nodes[group.anchor];
      dispatch = {result.prebuilt_kernel(node.attributes.custom->name),
                  schedule::custom_dims(schedule.graph, node),
                  1,
                  {}};
      continue;
    }
    if (group.kind == schedule::GroupKind::kControl) {
      for (const schedule::Schedule& body : group.bodies)
        dispatch.bodies.push_back(lower_items(body, result, on_host || group.on_host));
      continue;
    }
    lower::LoweredItem lowered = lower::lower_item(schedule, item, target);
    loop::Kernel& kernel = lowered.kernel;
    KernelList& list = on_host ? result.host : result.own;
    std::vector<loop::Kernel>& kernels = list.kernels;
    size_t first = on_host ? 0 : result.prebuilt.size();
    auto [it, fresh] =
        list.known.try_emplace(loop::to_string(kernel), static_cast<int>(first + kernels.size()));
    if (fresh) {
      kernel.name = std::string(to_string(group.kind)) + "_" + std::to_string(kernels.size());
      kernels.push_back(std::move(kernel));
    }
    dispatch = {it->second, std::move(lowered.symbols), lowered.workgroups, {}, lowered.may_fail};
  }
  return dispatches;
}

std::vector<schedule::Region> memory_regions(const CompileOptions& options) {
  std::vector<schedule::Region> regions;
  for (const MemoryOption& memory : options.memory)
    regions.push_back({memory.name, static_cast<int64_t>(memory.bytes), 0});
  return regions;
}

// Schedules and lowers an optimized graph, the next entry point; equal kernels appear once.
Status lower_entry_point(Graph optimized, const CompileOptions& options, Lowered& result) {
  bundle::CompiledEntry& entry = result.variant.entries.emplace_back();
  if (options.on_stage) options.on_stage("schedule");
  QUERNEL_TRY(optimized, schedule::give_kernels_attributes(std::move(optimized), [&](const std::string& op) {
                return result.prebuilt_kernel(op) >= 0;
              }));
  QUERNEL_TRY(entry.schedule, schedule::make_schedule(std::move(optimized), result.variant.target,
                                                      result.packings, memory_regions(options)));
  if (options.on_stage) options.on_stage("lower");
  entry.dispatches = lower_items(entry.schedule, result);
  return {};
}

// Optimizes, schedules and lowers all entry points. Stops after the graph passes where stop_after is one of
// them.
Expected<Lowered> lower_variant(const std::vector<Graph>& graphs, const Target& target,
                                const CompileOptions& options, schedule::Tilings* tilings) {
  Lowered result;
  result.packings = schedule::Packings(tilings);
  result.variant.target = target;
  QUERNEL_TRY(result.prebuilt, bundle::read_custom_kernels(graphs, target, options.custom_ops));
  for (const Graph& graph : graphs) {
    CompileOptions own = options;
    if (graphs.size() > 1 && !options.dump_dir.empty()) own.dump_dir += "/" + graph.name;
    QUERNEL_TRY(Graph optimized, run_graph_passes(graph, target, own, tilings));
    if (has_pass(graph_passes(), options.stop_after)) continue;
    QUERNEL_CHECK(lower_entry_point(std::move(optimized), options, result));
  }
  return result;
}

// All loop passes in order over every kernel, up to stop_after.
Status run_loop_passes(Lowered& lowered, const CompileOptions& options) {
  const std::string& target = lowered.variant.target.name;
  Dump dump(options.dump_dir.empty() ? std::string() : options.dump_dir + "/" + target);
  auto print_kernels = [&] {
    std::string text;
    for (const KernelList* list : {&lowered.own, &lowered.host})
      for (const loop::Kernel& kernel : list->kernels) text += loop::to_string(kernel);
    return text;
  };
  if (dump.active()) {
    std::string schedules;
    for (const bundle::CompiledEntry& entry : lowered.variant.entries)
      schedules += schedule::print(entry.schedule);
    QUERNEL_CHECK(dump.write("schedule.txt", schedules));
    QUERNEL_CHECK(dump.write("lowered.loop", print_kernels()));
  }
  PassOutput output(options, dump, ".loop", print_kernels);
  return run_passes(loop_passes(), options, output, [&](const LoopPass& pass) -> Status {
    for (KernelList* list : {&lowered.own, &lowered.host})
      for (loop::Kernel& kernel : list->kernels) {
        pass.run(kernel);
        if (should_verify(options)) QUERNEL_CHECK(loop::verify(kernel));
      }
    return {};
  });
}

Status run_passes_to_stop(const std::vector<Graph>& graphs, const Target& target,
                          const CompileOptions& options, schedule::Tilings* tilings) {
  QUERNEL_TRY(Lowered lowered, lower_variant(graphs, target, options, tilings));
  if (has_pass(graph_passes(), options.stop_after)) return {};
  return run_loop_passes(lowered, options);
}

}  // namespace

namespace {

struct CompiledCode {
  bundle::CompiledVariant variant;
  std::vector<loop::Kernel>
      kernels;  // of the C form, whose image is what the estimates for its header are of
};

// The C form's code is printed when the whole program is known. Kernels that machine code cannot be made of
// have no objects.
Expected<CompiledCode> prepare_c(Lowered lowered, const codegen::CompileOptions& codegen_options) {
  if (!lowered.prebuilt.empty())
    return unsupported("custom op '" + lowered.prebuilt[0].name +
                           "': a precompiled kernel is machine code, C cannot hold it",
                       {}, "compile with --emit=static");
  codegen::Image& image = lowered.variant.image;
  if (Expected<codegen::Image> compiled =
          codegen::compile_kernels(lowered.own.kernels, lowered.variant.target, codegen_options)) {
    image = std::move(*compiled);
    return CompiledCode{std::move(lowered.variant), std::move(lowered.own.kernels)};
  }
  for (size_t k = 0; k < lowered.own.kernels.size(); ++k) {
    image.kernel_names.push_back(lowered.own.kernels[k].name);
    image.symbols.push_back(codegen_options.symbol_prefix + std::to_string(k));
    image.scratch_bytes.push_back(codegen::scratch_bytes(lowered.own.kernels[k]));
    image.stack_bytes.push_back(0);
  }
  return CompiledCode{std::move(lowered.variant), std::move(lowered.own.kernels)};
}

Status compile_for_gpu(Lowered& lowered, const CompileOptions& options) {
  Target& target = lowered.variant.target;
  codegen::ShaderOptions shader_options;
  if (!options.dump_dir.empty()) shader_options.dump_dir = options.dump_dir + "/" + target.name;
  QUERNEL_TRY(codegen::ShaderImage shaders,
              codegen::compile_shaders(lowered.own.kernels, target, shader_options));
  target.required_features |= shaders.features;
  codegen::Image& image = lowered.variant.image;
  image.code = std::move(shaders.table);
  image.kernel_names = std::move(shaders.kernel_names);
  image.scratch_bytes.resize(image.kernel_names.size());
  image.stack_bytes.resize(image.kernel_names.size());
  return {};
}

// The code of one target, for an image or, with a prefix of the kernels' symbols, for the static form.
Expected<CompiledCode> compile_code(const std::vector<Graph>& graphs, const Target& target,
                                    const CompileOptions& options, schedule::Tilings* tilings,
                                    const std::string& symbol_prefix) {
  QUERNEL_ASSERT(options.stop_after.empty());
  QUERNEL_TRY(Lowered lowered, lower_variant(graphs, target, options, tilings));
  QUERNEL_CHECK(run_loop_passes(lowered, options));
  if (options.on_stage) options.on_stage("code generation");
  codegen::CompileOptions codegen_options;
  codegen_options.threads = options.threads;
  codegen_options.symbol_prefix = symbol_prefix;
  codegen_options.optimize = !contains(options.disabled_passes, kOptimizeCode);
  if (options.emit == Emit::kC) return prepare_c(std::move(lowered), codegen_options);
  if (!options.dump_dir.empty()) codegen_options.dump_dir = options.dump_dir + "/" + target.name;
  if (!target.is_gpu()) {
    QUERNEL_TRY(lowered.variant.image,
                codegen::compile_kernels(lowered.own.kernels, target, codegen_options, lowered.prebuilt));
    return CompiledCode{std::move(lowered.variant), {}};
  }
  QUERNEL_CHECK(compile_for_gpu(lowered, options));
  if (lowered.host.kernels.empty()) {
    lowered.variant.target.host = nullptr;  // which nothing asks for
  } else {
    QUERNEL_TRY(lowered.variant.host_image,
                codegen::compile_kernels(lowered.host.kernels, *target.host, codegen_options, {}));
  }
  return CompiledCode{std::move(lowered.variant), {}};
}

// By kernel; what no item of a schedule calls has none.
std::vector<std::string> kernel_classes(const bundle::BundleContents& contents) {
  std::vector<std::string> classes(contents.variants[0].kernels.size());
  for (const bundle::EntryPoint& entry : contents.entry_points)
    for (const bundle::Item& item : entry.plans[0].items)
      if (item.kind == bundle::ItemKind::kDispatch && !item.on_host) classes[item.kernel] = item.kernel_class;
  return classes;
}

Status write_bundle_file(const std::vector<bundle::CompiledVariant>& variants, const std::string& path,
                         CompileReport& report) {
  bundle::BundleContents contents = bundle::bundle_from_schedule(variants, std::string(kProducer));
  report.kernel_classes = kernel_classes(contents);
  QUERNEL_CHECK(bundle::check_counts(contents));
  QUERNEL_TRY(bundle::BundleSizes sizes, bundle::write_bundle(contents, path));
  report.file_bytes = sizes.file;
  report.code_bytes = sizes.code;
  report.constant_bytes = sizes.constants;
  return {};
}

std::vector<MemoryUse> memory_of(const codegen::StaticProgram& program) {
  std::vector<MemoryUse> memory;
  for (const codegen::StaticRegion& region : program.regions) memory.push_back({region.name, region.bytes});
  if (program.state_bytes != 0) memory.push_back({"state", program.state_bytes});
  return memory;
}

std::vector<StaticTensorReport> tensors_of(const std::vector<codegen::StaticTensor>& tensors) {
  std::vector<StaticTensorReport> result;
  for (const codegen::StaticTensor& t : tensors) {
    StaticTensorReport& to = result.emplace_back(
        StaticTensorReport{t.name, t.identifier, t.shape_identifier, t.dtype, {}, t.bytes});
    for (const codegen::Amount& dim : t.shape) to.shape.push_back(dim.expression < 0 ? dim.value : -1);
  }
  return result;
}

// What a report says of a program in either form.
StaticReport static_report(const codegen::StaticProgram& program, std::vector<std::string> files) {
  StaticReport report;
  report.files = std::move(files);
  report.memory = memory_of(program);
  report.inputs = tensors_of(program.entries[0].inputs);
  report.outputs = tensors_of(program.entries[0].outputs);
  return report;
}

Status write_static_form(const std::vector<bundle::CompiledVariant>& variants, const std::string& stem,
                         const CompileOptions& options, CompileReport& report) {
  const bundle::CompiledVariant& variant = variants[0];
  bundle::BundleContents contents = bundle::bundle_from_schedule(variants, std::string(kProducer));
  QUERNEL_TRY(codegen::StaticProgram program,
              bundle::static_program(contents, bundle::static_name(stem), variant.image.symbols));
  bool optimize = !contains(options.disabled_passes, kOptimizeCode);
  QUERNEL_TRY(codegen::StaticArchive archive,
              codegen::static_archive(program, variant.image.objects, variant.target, optimize));
  QUERNEL_CHECK(bundle::check_memory(program, {archive.stack_bytes, false}, options.max_ram));
  QUERNEL_TRY(std::vector<std::string> files, bundle::write_static(program, archive, variant.target, stem));
  StaticReport& result = report.program.emplace(static_report(program, std::move(files)));
  report.kernel_classes = kernel_classes(contents);
  report.file_bytes = archive.bytes.size();
  report.code_bytes = archive.kernel_bytes + archive.overhead_bytes;
  report.constant_bytes = program.constants_bytes;
  result.kernel_bytes = archive.kernel_bytes;
  result.overhead_bytes = archive.overhead_bytes;
  result.stack_bytes = archive.stack_bytes;
  result.helpers = archive.helpers;
  return {};
}

// What machine code for the same target has; the stack no less than the arrays in the C. Nothing where there
// is no such code.
std::optional<bundle::CodeFacts> estimate_facts(const codegen::StaticProgram& program,
                                                const bundle::CompiledVariant& variant,
                                                const codegen::CProgram& text,
                                                const CompileOptions& options) {
  if (variant.image.objects.empty() && !program.kernels.empty()) return std::nullopt;
  bool optimize = !contains(options.disabled_passes, kOptimizeCode);
  Expected<codegen::StaticArchive> archive =
      codegen::static_archive(program, variant.image.objects, variant.target, optimize);
  if (!archive) return std::nullopt;
  return bundle::CodeFacts{archive->kernel_bytes + archive->overhead_bytes, archive->overhead_bytes,
                           std::max(archive->stack_bytes, text.array_bytes), true};
}

Status write_c_form(const std::vector<bundle::CompiledVariant>& variants,
                    const std::vector<loop::Kernel>& kernels, const std::string& stem,
                    const CompileOptions& options, CompileReport& report) {
  const bundle::CompiledVariant& variant = variants[0];
  bundle::BundleContents contents = bundle::bundle_from_schedule(variants, std::string(kProducer));
  QUERNEL_TRY(codegen::StaticProgram program,
              bundle::static_program(contents, bundle::static_name(stem), variant.image.symbols));
  QUERNEL_TRY(codegen::CProgram text,
              codegen::print_program(program, kernels, variant.target, bundle::static_name(stem) + ".h"));
  std::optional<bundle::CodeFacts> facts = estimate_facts(program, variant, text, options);
  uint64_t stack_bytes = facts ? facts->stack_bytes : text.array_bytes;
  QUERNEL_CHECK(bundle::check_memory(program, {stack_bytes, true}, options.max_ram));
  QUERNEL_TRY(std::vector<std::string> files, bundle::write_c(program, text, facts, stem));
  StaticReport& result = report.program.emplace(static_report(program, std::move(files)));
  report.kernel_classes = kernel_classes(contents);
  report.file_bytes = text.program.size() + text.weights.size() + text.memory.size();
  report.constant_bytes = program.constants_bytes;
  result.estimated = true;
  result.stack_bytes = stack_bytes;
  if (!facts) return {};
  report.code_bytes = facts->code_bytes;
  result.kernel_bytes = facts->code_bytes - facts->overhead_bytes;
  result.overhead_bytes = facts->overhead_bytes;
  return {};
}

}  // namespace

Expected<bundle::CompiledVariant> compile_variant(const std::vector<Graph>& graphs, const Target& target,
                                                  const CompileOptions& options, schedule::Tilings* tilings) {
  QUERNEL_TRY(CompiledCode code, compile_code(graphs, target, options, tilings, {}));
  return std::move(code.variant);
}

namespace {
// With those that run on the host.
int item_count(const schedule::Schedule& schedule) {
  int count = 0;
  for (const schedule::Item& item : schedule.items)
    count += item.group >= 0 && schedule.groups[item.group].on_host
                 ? item_count(schedule.groups[item.group].bodies[0])
                 : 1;
  return count;
}

// Rules that can have no effect are mistakes.
Status check_place_rules(const std::vector<Graph>& graphs, const CompileOptions& options) {
  if (options.place.empty()) return {};
  bool any_host = false;
  for (const std::string& name : options.targets) {
    QUERNEL_TRY(Target target, find_target(name));
    any_host |= target.host != nullptr;
  }
  if (!any_host)
    return invalid_input("--place: expected a target that is a GPU with a processor beside it, found '" +
                             options.targets[0] + "'",
                         {}, "name one, --target vulkan/native say");
  for (const PlaceRule& rule : options.place)
    if (std::none_of(graphs.begin(), graphs.end(),
                     [&](const Graph& graph) { return schedule::names_a_node(rule, graph); }))
      return invalid_input("--place: no node has a name like '" + rule.pattern + "'", {},
                           "`quernel inspect --schedule` shows the nodes' names");
  return {};
}
}  // namespace

Expected<CompileReport> compile_graphs(const std::vector<Graph>& graphs, const std::string& path,
                                       const CompileOptions& options) {
  QUERNEL_CHECK(check_pass_names(options));
  QUERNEL_CHECK(check_place_rules(graphs, options));
  QUERNEL_CHECK(check_shared_states(graphs));
  bool is_program = options.emit != Emit::kBundle;
  const char* form = options.emit == Emit::kC ? "C files" : "a static library";
  if (is_program && options.targets.size() != 1)
    return invalid_input("expected one target for " + std::string(form) + ", found " +
                         std::to_string(options.targets.size()));
  std::string symbol_prefix;
  if (is_program) {
    QUERNEL_CHECK(bundle::check_static_name(bundle::static_name(path)));
    symbol_prefix = bundle::static_kernel_prefix(bundle::static_name(path));
  }
  CompileReport report;
  report.stopped = !options.stop_after.empty();
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
  schedule::Tilings tilings;
  if (!options.tuning_file.empty()) {
    QUERNEL_TRY(tilings, schedule::Tilings::read(options.tuning_file));
  }
  bool for_gpu = std::any_of(options.targets.begin(), options.targets.end(), [](const std::string& name) {
    Expected<Target> target = find_target(name);
    return target && target->is_gpu();
  });
  if (!options.device_profile.empty() && !for_gpu)
    return invalid_input(
        "device profile '" + options.device_profile + "': expected a GPU among the targets, found none", {},
        "name one (--target=vulkan), or leave the profile out");
  std::vector<std::string> targets;
  std::vector<bundle::CompiledVariant> variants;
  std::vector<loop::Kernel> c_kernels;
  for (const std::string& name : options.targets) {
    QUERNEL_TRY(Target target, find_target(name));
    if (target.is_gpu() && !options.device_profile.empty())
      QUERNEL_CHECK(read_device_profile(target, options.device_profile));
    if (target.firmware && !is_program && !report.stopped)
      return unsupported(
          "target '" + target.name + "': its kernels are linked into firmware, bundles hold none", {},
          "name a target that runs Linux, or compile for firmware with --emit=static");
    if (target.is_gpu() && is_program)
      return unsupported("target '" + target.name + "': " + form + " cannot hold shaders", {},
                         "compile a bundle (--emit=bundle)");
    for (const std::string& other : targets)
      if (Target t = *find_target(other);
          t.arch == target.arch && t.required_features == target.required_features &&
          !t.host == !target.host &&
          (!t.host || (t.host->arch == target.host->arch &&
                       t.host->required_features == target.host->required_features)))
        return invalid_input("targets '" + other + "' and '" + target.name +
                                 "' ask the same of a device: it would never choose the second",
                             {}, "leave one of them out");
    targets.push_back(target.name);
    if (report.stopped) {
      QUERNEL_CHECK(run_passes_to_stop(graphs, target, timed, &tilings));
      continue;
    }
    QUERNEL_TRY(std::vector<std::string> notes,
                bundle::missing_custom_kernels(graphs, target, options.custom_ops));
    report.notes.insert(report.notes.end(), notes.begin(), notes.end());
    QUERNEL_TRY(CompiledCode code, compile_code(graphs, target, timed, &tilings, symbol_prefix));
    variants.push_back(std::move(code.variant));
    c_kernels = std::move(code.kernels);
  }
  if (std::optional<std::string> note = tilings.unused(targets)) report.notes.push_back(std::move(*note));
  if (report.stopped) {
    finish();
    return report;
  }
  timed.on_stage(is_program ? "write " + std::string(form) : "write bundle");
  switch (options.emit) {
    case Emit::kBundle:
      QUERNEL_CHECK(write_bundle_file(variants, path, report));
      break;
    case Emit::kStatic:
      QUERNEL_CHECK(write_static_form(variants, path, options, report));
      break;
    case Emit::kC:
      QUERNEL_CHECK(write_c_form(variants, c_kernels, path, options, report));
      break;
  }
  finish();
  report.kernels =
      static_cast<int>(variants[0].image.kernel_names.size() + variants[0].host_image.kernel_names.size());
  report.multiply_adds = multiply_adds(graphs[0]).estimate();
  for (const bundle::CompiledEntry& entry : variants[0].entries) {
    uint64_t workspace = 0;
    for (const schedule::Region& region : entry.schedule.regions)
      workspace += static_cast<uint64_t>(region.bytes.estimate());
    report.workspace_bytes = std::max(report.workspace_bytes, workspace);
    report.dispatches += item_count(entry.schedule);
  }
  return report;
}

Expected<CompileReport> compile(const std::string& model, const std::string& output,
                                const CompileOptions& options) {
  if (options.on_stage) options.on_stage("import");
  auto start = std::chrono::steady_clock::now();
  QUERNEL_TRY(std::vector<Imported> entries, import_entry_points(model, options));
  double import_seconds = seconds_since(start);
  std::vector<Graph> graphs;
  for (Imported& entry : entries) graphs.push_back(std::move(entry.graph));
  QUERNEL_TRY(CompileReport report, compile_graphs(graphs, output, options));
  report.stages.insert(report.stages.begin(), {"import", import_seconds});
  auto append = [](std::vector<std::string>& to, std::vector<std::string> from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (size_t i = 0; i < entries.size(); ++i) {
    append(report.notes, entries[i].notes);
    append(report.fixed_inputs, entries[i].fixed_inputs);
    append(report.fourier_outputs, entries[i].fourier_outputs);
    append(report.random_outputs, random_outputs(graphs[i]));
  }
  double error = options.precision == DType::kF32 ? 0 : rounding_error(graphs, options.precision);
  if (error > 0) {
    char percent[16];
    std::snprintf(percent, sizeof percent, "%.2g", 100 * error);
    report.notes.push_back("large weights are stored in " + std::string(to_string(options.precision)) +
                           ", off by " + percent + " % (root mean square)");
    for (const std::string& name : options.targets) {
      Target target = *find_target(name);
      if (options.precision == DType::kF16 && !target.has_f16)
        report.notes.push_back("target " + name +
                               " has no instruction that widens f16: bf16 is several times faster there");
      if (target.multiplies(options.precision))
        report.notes.push_back("target " + name +
                               " multiplies bf16: what large weights are multiplied with " +
                               "is rounded, too, sums are f32");
    }
  }
  return report;
}

Expected<std::vector<std::string>> check(const std::string& model, const CompileOptions& options) {
  QUERNEL_CHECK(check_pass_names(options));
  QUERNEL_TRY(std::vector<Imported> entries, import_entry_points(model, options));
  std::vector<std::string> notes;
  for (const std::string& name : options.targets) {
    QUERNEL_TRY(Target target, find_target(name));
    schedule::Packings packings;
    for (const Imported& entry : entries) {
      QUERNEL_TRY(Graph graph, run_graph_passes(entry.graph, target, options));
      if (has_pass(graph_passes(), options.stop_after)) continue;
      QUERNEL_TRY(schedule::Schedule schedule, schedule::make_schedule(std::move(graph), target, packings));
    }
  }
  for (const Imported& entry : entries) notes.insert(notes.end(), entry.notes.begin(), entry.notes.end());
  return notes;
}

Expected<std::vector<schedule::TunableContraction>> tunable_contractions(const std::string& model,
                                                                         const CompileOptions& options) {
  QUERNEL_CHECK(check_pass_names(options));
  QUERNEL_TRY(std::vector<Imported> entries, import_entry_points(model, options));
  QUERNEL_TRY(Target target, find_target(options.targets[0]));
  schedule::Packings packings;
  std::vector<schedule::TunableContraction> result;
  for (Imported& entry : entries) {
    QUERNEL_TRY(Graph graph, run_graph_passes(std::move(entry.graph), target, options));
    QUERNEL_TRY(schedule::Schedule schedule, schedule::make_schedule(std::move(graph), target, packings));
    for (schedule::TunableContraction& c : schedule::tunable_contractions(schedule, target))
      result.push_back(std::move(c));
  }
  return result;
}

}  // namespace quernel
