// Graphs to one target's machine code, shaders or, for the C form, kernels.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_from_schedule.h"
#include "graph/ir.h"
#include "loop/ir.h"
#include "pipeline/run_passes.h"
#include "quernel/compiler.h"
#include "targets/target.h"

namespace quernel {

struct CompiledCode {
  bundle::CompiledVariant variant;
  // The C form's, whose image is there for the estimates in its header only.
  std::vector<loop::Kernel> kernels;
  std::vector<std::string> notes;  // for people
};

inline bool optimizes_code(const CompileOptions& options) {
  return !is_named(options.disabled_passes, kOptimizeCode);
}

// The code of one target for an image or, with a prefix of the kernels' symbols, for the static form. Requires
// that options.stop_after is empty.
Expected<CompiledCode> compile_code(const std::vector<Graph>& graphs, const Target& target,
                                    const CompileOptions& options, schedule::Choices* choices,
                                    const std::string& symbol_prefix);

}  // namespace quernel
