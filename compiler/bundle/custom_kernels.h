// The precompiled kernels of custom ops, chosen for a target and read from their object files.
#pragma once

#include <string>
#include <vector>

#include "codegen/llvm/prebuilt_kernel.h"
#include "graph/custom_op.h"
#include "targets/target.h"

namespace quernel::bundle {

// One kernel per custom op that the graphs use and that has one for the target: of those that run on it, the
// one that needs most of what it has. Named as the op.
Expected<std::vector<codegen::PrebuiltKernel>> read_custom_kernels(
    const std::vector<Graph>& graphs, const Target& target, const std::vector<CustomOpDescription>& ops);

// Notes on used custom ops that have kernels, but none for the target.
Expected<std::vector<std::string>> missing_custom_kernels(const std::vector<Graph>& graphs,
                                                          const Target& target,
                                                          const std::vector<CustomOpDescription>& ops);

}  // namespace quernel::bundle
