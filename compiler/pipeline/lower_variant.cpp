#include "pipeline/lower_variant.h"

#include <algorithm>
#include <numeric>

#include "bundle/custom_kernels.h"
#include "graph/multiply_adds.h"
#include "loop/print.h"
#include "lower/count_iterations.h"
#include "lower/lower_item.h"
#include "pipeline/fit_ram.h"
#include "pipeline/reproducer.h"
#include "pipeline/run_passes.h"
#include "schedule/custom_call.h"
#include "schemas/kernel_abi.h"

namespace quernel {
namespace {

// Some drivers end the loops of an invocation after so many iterations, all together and without an error: a kernel
// of run-time sizes that may have more gets their number, so that the runtime can refuse it there.
Status give_iterations(lower::LoweredItem& item) {
  if (item.symbols.empty()) return {};
  Dim iterations = 0;
  if (item.iterations) {
    iterations = *item.iterations;
  } else {
    loop::Kernel simplified = item.kernel;
    QUERNEL_CHECK(run_loop_passes({&simplified}, {}));
    iterations = lower::count_iterations(simplified, item.symbols);
  }
  if (always_le(iterations, QNL_SPIRV_FEW_ITERATIONS)) return {};
  item.symbols.push_back(iterations);
  item.kernel.symbols.emplace_back("iterations");
  item.kernel.counts_iterations = true;
  return {};
}

// The items of a schedule and of the bodies in it, for the target or for its companion CPU.
Expected<std::vector<bundle::Dispatch>> lower_items(const schedule::Schedule& schedule, Lowered& result,
                                                    bool on_companion = false) {
  const Target& target = on_companion ? *result.variant.target.companion : result.variant.target;
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
      for (const schedule::Schedule& body : group.bodies) {
        QUERNEL_TRY(std::vector<bundle::Dispatch> items,
                    lower_items(body, result, on_companion || group.on_companion));
        dispatch.bodies.push_back(std::move(items));
      }
      continue;
    }
    lower::LoweredItem lowered = lower::lower_item(schedule, item, target);
    if (target.lanes_are_invocations()) QUERNEL_CHECK(give_iterations(lowered));
    loop::Kernel& kernel = lowered.kernel;
    KernelList& list = on_companion ? result.companion : result.own;
    std::vector<loop::Kernel>& kernels = list.kernels;
    size_t first = on_companion ? 0 : result.prebuilt.size();
    kernel.name.clear();  // equal kernels are one, whatever the kinds of their groups
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

// Schedules and, unless options.stop_after ends it before, lowers an optimized graph, that of `entry`; equal kernels
// appear once.
Status lower_entry_point(Graph optimized, const CompileOptions& options, Lowered& result,
                         bundle::CompiledEntry& entry) {
  QUERNEL_TRY(optimized, schedule::give_kernels_attributes(std::move(optimized), [&](const std::string& op) {
                return result.prebuilt_kernel(op) >= 0;
              }));
  const Target& target = result.variant.target;
  std::string dump_dir = options.dump_dir.empty() ? "" : options.dump_dir + "/" + target.name + "/schedule";
  QUERNEL_TRY(entry.schedule,
              make_schedule(std::move(optimized), target, result.packings, options, dump_dir));
  if (has_pass(schedule_passes(), options.stop_after)) return {};
  if (options.on_stage) options.on_stage("lower");
  return with_reproducer(
      options.dump_dir, "lower",
      [&] { return graph_reproducer("stage", "lower", entry.schedule.graph, target); },
      [&]() -> Status {
        QUERNEL_TRY(entry.dispatches, lower_items(entry.schedule, result));
        return {};
      });
}

// Gives the dispatches of kernels that now share code their kernel and its arguments.
void dispatch_shared(std::vector<bundle::Dispatch>& dispatches, const std::vector<loop::SharedKernel>& shared,
                     int first) {
  for (bundle::Dispatch& dispatch : dispatches) {
    for (std::vector<bundle::Dispatch>& body : dispatch.bodies) dispatch_shared(body, shared, first);
    if (dispatch.kernel < first) continue;
    const loop::SharedKernel& kernel = shared[static_cast<size_t>(dispatch.kernel - first)];
    dispatch.kernel = first + kernel.kernel;
    dispatch.symbols.insert(dispatch.symbols.end(), kernel.arguments.begin(), kernel.arguments.end());
  }
}

// Runs the passes over the kernels of the target and of its companion CPU, and those over programs where code is dear.
Status optimize_kernels(Lowered& lowered, const CompileOptions& options) {
  Dump dump(options.dump_dir.empty() ? std::string() : options.dump_dir + "/" + lowered.variant.target.name);
  std::vector<loop::Kernel*> kernels;
  for (KernelList* list : {&lowered.own, &lowered.companion})
    for (loop::Kernel& kernel : list->kernels) kernels.push_back(&kernel);
  if (dump.active()) {
    QUERNEL_CHECK(dump.write("lowered.loop", to_string(kernels)));
  }
  QUERNEL_CHECK(run_passes(selected_passes(loop_passes(), options), kernels, options, dump));
  if (!lowered.variant.target.code_is_dear() || has_pass(loop_passes(), options.stop_after)) return {};
  QUERNEL_TRY(const std::vector<loop::SharedKernel> shared,
              run_passes(selected_passes(program_passes(), options), lowered.own.kernels, options, dump));
  for (bundle::CompiledEntry& entry : lowered.variant.entries)
    dispatch_shared(entry.dispatches, shared, static_cast<int>(lowered.prebuilt.size()));
  return {};
}

// The optimized graphs in the order in which they are scheduled. The first one that reads a constant decides how it is packed:
// the one of the least arithmetic, such as a language model's single token, for it takes as long as reading constants takes.
std::vector<size_t> in_order_of_work(const std::vector<Graph>& graphs) {
  std::vector<size_t> order(graphs.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<int64_t> work;
  for (const Graph& graph : graphs) work.push_back(multiply_adds(graph).estimate());
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return work[a] < work[b]; });
  return order;
}

}  // namespace

Expected<Lowered> lower_variant(const std::vector<Graph>& graphs, const Target& target,
                                const CompileOptions& options, schedule::Choices* choices) {
  Lowered result;
  result.packings = schedule::Packings(choices);
  result.variant.target = target;
  const bool stops_at_graphs = has_pass(graph_passes(), options.stop_after);
  QUERNEL_TRY(result.prebuilt, bundle::read_custom_kernels(graphs, target, options.custom_ops));
  std::vector<std::vector<std::string>> notes(graphs.size());
  const auto options_of = [&](size_t i) {
    CompileOptions own = options;
    if (graphs.size() > 1 && !options.dump_dir.empty()) own.dump_dir += "/" + graphs[i].name;
    return own;
  };
  std::vector<Graph> optimized(graphs.size());
  for (size_t i = 0; i < graphs.size(); ++i) {
    QUERNEL_TRY(optimized[i], run_graph_passes(graphs[i], target, options_of(i), choices, &notes[i]));
  }
  if (stops_at_graphs) return result;
  result.variant.entries.resize(graphs.size());
  for (size_t i : in_order_of_work(optimized)) {
    const CompileOptions own = options_of(i);
    QUERNEL_TRY(FittedGraph fitted, fit_ram(std::move(optimized[i]), target, own));
    notes[i].insert(notes[i].end(), fitted.notes.begin(), fitted.notes.end());
    QUERNEL_CHECK(lower_entry_point(std::move(fitted.graph), own, result, result.variant.entries[i]));
  }
  for (size_t i = 0; i < graphs.size(); ++i)
    for (std::string& note : notes[i])
      result.notes.push_back(graphs.size() > 1 ? graphs[i].name + ": " + note : std::move(note));
  if (!has_pass(schedule_passes(), options.stop_after)) QUERNEL_CHECK(optimize_kernels(result, options));
  return result;
}

}  // namespace quernel
