// Graphs to one target's kernels: graph passes, schedules, lowering, loop passes.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "bundle/bundle_from_schedule.h"
#include "codegen/llvm/compile_kernels.h"
#include "graph/ir.h"
#include "loop/ir.h"
#include "quernel/compiler.h"
#include "schedule/packings.h"
#include "targets/target.h"

namespace quernel {

// Kernels of one processor, equal ones once.
struct KernelList {
  std::vector<loop::Kernel> kernels;
  std::unordered_map<std::string, int> known;  // by their text, without the name
};

struct Lowered {
  bundle::CompiledVariant variant;  // without its images
  // Of custom ops, the image's first kernels.
  std::vector<codegen::PrebuiltKernel> prebuilt;
  KernelList own, companion;  // of the target, and of its companion CPU
  schedule::Packings packings;
  std::vector<std::string> notes;  // for people

  // The image's kernel of the custom op; -1 where it has none.
  int prebuilt_kernel(const std::string& op) const {
    for (size_t i = 0; i < prebuilt.size(); ++i)
      if (prebuilt[i].name == op) return static_cast<int>(i);
    return -1;
  }
};

// Optimizes, schedules and lowers the graphs of all entry points, named as those. Where options.stop_after is
// a pass, it stops there.
Expected<Lowered> lower_variant(const std::vector<Graph>& graphs, const Target& target,
                                const CompileOptions& options, schedule::Choices* choices);

}  // namespace quernel
