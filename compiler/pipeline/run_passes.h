// Runs passes. Every tool and test that runs one does so here. Around each pass: options.on_stage hears its
// name, the result is verified, and, as the options ask, its text goes to the dump folder and to stderr.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/pass_tables.h"

namespace quernel {

bool is_named(const std::vector<std::string>& names, std::string_view name);

// Numbered files in a folder, which the first file creates.
class Dump {
 public:
  // Empty: nothing is written.
  explicit Dump(std::string dir) : dir_(std::move(dir)) {}
  bool active() const { return !dir_.empty(); }
  Status write(const std::string& name, const std::string& text);

 private:
  std::string dir_;
  int next_ = 0;
};

// The passes of a table, in its order, up to options.stop_after, without those that are disabled.
template <class Pass>
std::vector<const Pass*> selected_passes(const std::vector<Pass>& table, const CompileOptions& options) {
  std::vector<const Pass*> selected;
  for (const Pass& pass : table) {
    if (!pass.optional || !is_named(options.disabled_passes, pass.name)) selected.push_back(&pass);
    if (options.stop_after == pass.name) break;
  }
  return selected;
}

// Runs passes in this order over a graph and the bodies in it. `choices`, and `notes` for people, may be null.
Expected<Graph> run_passes(const std::vector<const GraphPass*>& passes, Graph graph, const Target& target,
                           const CompileOptions& options, Dump& dump, schedule::Choices* choices = nullptr,
                           std::vector<std::string>* notes = nullptr);
// Runs steps in this order over a schedule, and over those of the bodies in it, which they announce, print and dump as
// parts of it. Packs constants as `packings` has packed them before.
Status run_passes(const std::vector<const SchedulePass*>& passes, schedule::Schedule& schedule,
                  const Target& target, schedule::Packings& packings, const CompileOptions& options,
                  Dump& dump);
// Runs passes in this order over kernels.
Status run_passes(const std::vector<const LoopPass*>& passes, const std::vector<loop::Kernel*>& kernels,
                  const CompileOptions& options, Dump& dump);

// Runs passes in this order over all kernels of a program. Returns how each of those before is run now.
Expected<std::vector<loop::SharedKernel>> run_passes(const std::vector<const ProgramPass*>& passes,
                                                     std::vector<loop::Kernel>& kernels,
                                                     const CompileOptions& options, Dump& dump);

// Runs all graph passes that the options select. Errors: also inputs and outputs that a runtime cannot be
// given.
Expected<Graph> run_graph_passes(Graph graph, const Target& target, const CompileOptions& options,
                                 schedule::Choices* choices = nullptr,
                                 std::vector<std::string>* notes = nullptr);

// Makes the schedule of an optimized graph by all steps that the options select. `dump_dir`: of its own; empty: it
// dumps nothing.
Expected<schedule::Schedule> make_schedule(Graph graph, const Target& target, schedule::Packings& packings,
                                           const CompileOptions& options = {},
                                           const std::string& dump_dir = {});

// Runs all loop passes that the options select over kernels, and dumps nothing.
Status run_loop_passes(const std::vector<loop::Kernel*>& kernels, const CompileOptions& options);

// The text of kernels, which can be read back.
std::string to_string(const std::vector<loop::Kernel*>& kernels);

}  // namespace quernel
