// From the contents of a bundle of one variant to a program without a runtime, which code is generated from.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "codegen/static_program.h"
#include "support/expected.h"

namespace quernel::bundle {

// `name` names the program's files; `kernel_symbols` has one per kernel of the variant. The program refers to
// the constants behind `contents`. Unsupported: sizes that are not known before a run (all such dims at
// once), custom ops without a precompiled kernel.
Expected<codegen::StaticProgram> static_program(const BundleContents& contents, const std::string& name,
                                                const std::vector<std::string>& kernel_symbols);

// Invalid input where a region's part of the workspace is more than its capacity, or workspace, states and
// stack together more than `max_ram` (0: no limit); with an account of what each step needs.
struct StackNeed {
  uint64_t bytes = 0;  // 0: not known
  bool estimated = false;
};
Status check_memory(const codegen::StaticProgram& program, StackNeed stack, uint64_t max_ram);

// The symbol of kernel `index` of the program `name` is this and the index.
std::string static_kernel_prefix(const std::string& name);

}  // namespace quernel::bundle
