// The tables of passes, in the order in which they run.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "graph/passes/passes.h"
#include "loop/ir.h"
#include "loop/share_kernels.h"
#include "quernel/compiler.h"
#include "schedule/steps.h"
#include "schedule/target_passes/target_passes.h"
#include "schedule/tunable_kernels.h"
#include "targets/target.h"

namespace quernel {

// What the passes over one graph share.
struct GraphPassState {
  // --allow-large lifts the limit of folding.
  explicit GraphPassState(const CompileOptions& options, schedule::Choices* choices = nullptr)
      : choices(choices) {
    if (options.allow_large) folding.left = INT64_MAX;
  }
  schedule::Choices* choices;  // may be null
  schedule::RoundedActivations activations;
  FoldBudget folding;
};

struct GraphPass {
  std::string_view name;      // as --print-after and --disable-pass name it
  std::string_view sentence;  // what it does
  std::function<Expected<Graph>(const Graph&, const Target&, const CompileOptions&, GraphPassState&)> run;
  bool optional = true;  // may be disabled: results do not change
};
// A step of scheduling.
struct SchedulePass {
  std::string_view name;
  std::string_view sentence;
  std::function<Status(schedule::Schedule&, const Target&, schedule::Packings&,
                       const schedule::ScheduleBody&)>
      run;
  bool optional = false;
};
struct LoopPass {
  std::string_view name;
  std::string_view sentence;
  void (*run)(loop::Kernel&);
  bool optional = true;
};
// A pass over all kernels of a program at once, after those over each; for targets whose code is dear. It returns how
// each kernel is run now.
struct ProgramPass {
  std::string_view name;
  std::string_view sentence;
  std::vector<loop::SharedKernel> (*run)(std::vector<loop::Kernel>&);
  bool optional = true;
};
template <class Pass>
bool has_pass(const std::vector<Pass>& passes, std::string_view name) {
  return std::any_of(passes.begin(), passes.end(), [&](const Pass& pass) { return pass.name == name; });
}
const std::vector<GraphPass>& graph_passes();
const std::vector<SchedulePass>& schedule_passes();
const std::vector<LoopPass>& loop_passes();
const std::vector<ProgramPass>& program_passes();
// LLVM's own passes over the kernels, as --disable-pass names them all.
inline constexpr std::string_view kOptimizeCode = "optimize-code";
// What --disable-pass takes: the optional passes of graphs, schedules, loops and programs, and kOptimizeCode.
std::vector<std::string_view> optional_passes();

// Names in disabled_passes, print_after and stop_after that are no pass's; the message begins with the
// option's name.
Status check_pass_names(const CompileOptions& options);
// Answers a mistyped pass name of an option: the nearest legal one, then all.
Diagnostic unknown_pass(const std::string& option, const std::string& name,
                        const std::vector<std::string_view>& legal);

}  // namespace quernel
