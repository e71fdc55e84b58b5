// Turns the contents of a bundle with one variant into a program without a runtime, from which code is
// generated.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "codegen/static_program.h"
#include "support/expected.h"

namespace quernel::bundle {

// `name`: names the program's files. `kernel_symbols`: one per kernel of the variant. The program refers to
// the constants behind `contents`. Unsupported: sizes unknown before a run (all such dims are reported at
// once), custom ops without a precompiled kernel.
Expected<codegen::StaticProgram> build_static_program(const BundleContents& contents, const std::string& name,
                                                      const std::vector<std::string>& kernel_symbols);

// Returns invalid input if a region's part of the workspace exceeds its capacity, or if workspace, states and
// stack together exceed `max_ram` (0: no limit). The error lists what each step needs.
struct StackNeed {
  uint64_t bytes = 0;  // 0: unknown
  bool estimated = false;
};
Status check_memory(const codegen::StaticProgram& program, StackNeed stack, uint64_t max_ram);

// Returns the prefix of the program's kernel symbols; the kernel's index follows it.
std::string static_kernel_prefix(const std::string& name);

}  // namespace quernel::bundle
