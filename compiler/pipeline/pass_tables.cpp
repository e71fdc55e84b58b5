#include "pipeline/pass_tables.h"

#include <algorithm>

#include "loop/passes.h"
#include "schedule/contraction/sliding_windows.h"
#include "schedule/kernel_limits.h"
#include "schedule/split_limits.h"
#include "schedule/target_passes/target_passes.h"
#include "support/edit_distance.h"

namespace quernel {
namespace {

auto graph_pass(Expected<Graph> (*pass)(const Graph&)) {
  return [pass](const Graph& graph, auto&&...) { return pass(graph); };
}

}  // namespace

const std::vector<GraphPass>& graph_passes() {
  auto fold = [](const Graph& graph, auto&, auto&, GraphPassState& state) {
    return fold_constants(graph, state.folding);
  };
  static const std::vector<GraphPass> passes = {
      {"place-nodes", "a GPU's nodes that run on its companion CPU",
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
      {"form-quantized-constants",
       "weights that elementwise nodes widen stay quantised for products and convolutions",
       graph_pass(form_quantized_constants)},
      {"expand-dequantize",
       "quantised constants stay where contractions read them; elsewhere they are floats",
       graph_pass(expand_dequantize), false},
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
      {"form-byte-tables", "chains of elementwise nodes from byte to byte become tables of 256 bytes",
       graph_pass(form_byte_tables)},
      {"split-windows", "large windows of maxima go one dim after the other",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (target.dispatch_is_dear() || target.memory_is_dear()) return graph;
         return split_windows(graph);
       }},
      {"split-long-lines", "scans, ArgMax and sorts of long lines go block by block",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (!target.shares_work()) return graph;
         return split_long_lines(graph, schedule::line_limits(target));
       }},
      {"split-long-scatters", "many updates of few places are combined in parts",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (!target.shares_work()) return graph;
         return split_long_scatters(graph, schedule::scatter_limits(target));
       }},
      {"join-products", "products of one operand with several quantised constants become one",
       [](const Graph& graph, const Target& target, auto&&...) {
         return schedule::join_products(graph, target);
       }},
      {"quantize-activations", "with --activations i8: rows that meet quantised weights are rounded to i8",
       [](const Graph& graph, const Target& target, const CompileOptions& options,
          GraphPassState& state) -> Expected<Graph> {
         if (options.activations != DType::kI8) return graph;
         return schedule::quantize_activations(graph, target, options.scale_per_row, &state.activations);
       },
       false},
      {"split-activations",
       "few rows of f32 that meet quantised weights become three bytes, where int8 dot products multiply "
       "those",
       [](const Graph& graph, const Target& target, const CompileOptions& options,
          auto&&) -> Expected<Graph> {
         if (options.activations == DType::kI8) return graph;
         return schedule::split_activations(graph, target);
       }},
      {"compose-views", "movement chains that no named op can say become one index map",
       graph_pass(compose_views)},
      {"split-long-contractions", "contractions over many terms go in parts, which workgroups share",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (!target.shares_work()) return graph;
         return split_long_contractions(graph, schedule::contraction_limits(target));
       }},
      {"choose-winograd", "3x3 convolutions that Winograd's algorithm computes faster",
       [](const Graph& graph, const Target& target, const CompileOptions& options, GraphPassState& state) {
         return schedule::choose_winograd(graph, target, state.choices, options.precision);
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
      {"narrow-multipliers", "factors of 64-bit products of 32-bit operands are stored in 32 bits",
       graph_pass(narrow_multipliers), false},
      {"shrink-shifts",
       "where code is dear: different counts of rounding shifts, and the halves that round, are stored in "
       "bytes",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         return target.code_is_dear() ? shrink_shifts(graph) : graph;
       },
       false},
      {"split-weights", "for a GPU: weights that no storage buffer need hold become several",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (!target.bindings_are_few()) return graph;
         return split_weights(graph, Target::kBindingBytes);
       }},
      {"split-long-reductions", "reductions of many elements go in parts, which workgroups share",
       [](const Graph& graph, const Target& target, auto&&...) -> Expected<Graph> {
         if (!target.shares_work()) return graph;
         return split_long_reductions(graph, schedule::reduction_limits(target));
       }},
      {"split-long-cats", "cats of many operands are copied by several kernels, each of a few operands",
       [](const Graph& graph, auto&&...) { return split_long_cats(graph, schedule::kMostCatOperands); }},
      {"merge-common-subexpressions-2", "copies made twice become one",
       graph_pass(merge_common_subexpressions)},
  };
  return passes;
}

const std::vector<SchedulePass>& schedule_passes() {
  using schedule::Packings, schedule::Schedule;
  static const std::vector<SchedulePass> passes = {
      {"give-values-storage", "outputs and carried values get kernels that write them for them alone",
       [](Schedule& s, auto&&...) { return schedule::give_values_storage(s); }},
      {"form-groups", "fusion: which nodes share a kernel, and which values are stored",
       [](Schedule& s, const Target& target, auto&&...) -> Status {
         schedule::form_groups(s, target);
         return {};
       }},
      {"narrow-stored-values",
       "chains of elementwise nodes are cut between groups where values are narrowest",
       [](Schedule& s, const Target& target, auto&&...) -> Status {
         schedule::narrow_stored_values(s, target);
         return {};
       },
       true},
      {"form-rows", "groups that work on the same rows become one kernel",
       [](Schedule& s, const Target& target, auto&&...) -> Status {
         schedule::form_rows(s, target);
         return {};
       },
       true},
      {"form-attention", "softmax(q k) v becomes one kernel without the matrix of scores",
       [](Schedule& s, const Target& target, auto&&...) -> Status {
         schedule::form_attention(s, target);
         return {};
       },
       true},
      {"split-long-rows", "rows that a GPU's workgroup cannot hold become shorter chains of groups",
       [](Schedule& s, const Target& target, auto&&...) -> Status {
         schedule::split_long_rows(s, target);
         return {};
       }},
      {"assign-storage", "stored values get buffers, contractions get tiles, constants are packed",
       [](Schedule& s, const Target& target, Packings& packings, auto&&...) {
         return schedule::assign_storage(s, target, packings);
       }},
      {"place-states", "next values of states are written over the current ones",
       [](Schedule& s, auto&&...) { return schedule::place_states(s); }},
      {"schedule-bodies", "bodies of loops and branches get schedules", schedule::schedule_bodies},
      {"plan-memory", "items in order with their hazards, and every buffer's place in memory",
       [](Schedule& s, const Target& target, auto&&...) { return schedule::plan_memory(s, target); }},
      {"plan-kernels", "how the work of each kernel is divided: loops, vectors, workgroups, tiles",
       [](Schedule& s, const Target& target, Packings& packings, auto&&...) {
         return schedule::plan_kernels(s, target, packings.choices());
       }},
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

const std::vector<ProgramPass>& program_passes() {
  static const std::vector<ProgramPass> passes = {
      {"share-kernels", "where code is dear: kernels that differ in sizes only become one with arguments",
       loop::share_kernels},
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
  for (const SchedulePass& pass : schedule_passes())
    if (pass.optional) names.push_back(pass.name);
  for (const LoopPass& pass : loop_passes())
    if (pass.optional) names.push_back(pass.name);
  for (const ProgramPass& pass : program_passes())
    if (pass.optional) names.push_back(pass.name);
  names.push_back(kOptimizeCode);
  return names;
}

Status check_pass_names(const CompileOptions& options) {
  std::vector<std::string_view> all, optional = optional_passes();
  for (const GraphPass& pass : graph_passes()) all.push_back(pass.name);
  for (const SchedulePass& pass : schedule_passes()) all.push_back(pass.name);
  for (const LoopPass& pass : loop_passes()) all.push_back(pass.name);
  for (const ProgramPass& pass : program_passes()) all.push_back(pass.name);
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

}  // namespace quernel
