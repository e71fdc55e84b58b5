// The precompiled kernels of custom ops, chosen for a target and read from their object files.
#pragma once

#include <string>
#include <vector>

#include "codegen/llvm/prebuilt_kernel.h"
#include "graph/custom_op.h"
#include "targets/target.h"

namespace quernel::bundle {

// Returns one kernel for each custom op that the graphs use and that has a kernel for the target. Among the
// kernels that run on the target, it picks the one with the numerically greatest required features. The
// kernel is named after the op.
Expected<std::vector<codegen::PrebuiltKernel>> read_custom_kernels(
    const std::vector<Graph>& graphs, const Target& target, const std::vector<CustomOpDescription>& ops);

// Returns notes on used custom ops that have kernels, but none for the target.
Expected<std::vector<std::string>> missing_custom_kernels(const std::vector<Graph>& graphs,
                                                          const Target& target,
                                                          const std::vector<CustomOpDescription>& ops);

}  // namespace quernel::bundle
