// Compiled code to files: a bundle, a static library with its header, or C.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_from_schedule.h"
#include "loop/ir.h"
#include "pipeline/import_models.h"
#include "quernel/compiler.h"

namespace quernel {

// Each adds to the report what it wrote. `stem`: the files' path without what their names end with.
Status write_bundle_file(const std::vector<bundle::CompiledVariant>& variants, const std::string& path,
                         const ModelFacts& facts, CompileReport& report);
// What a program needs: known, too, where it is refused because that is more than CompileOptions::max_ram.
struct RamNeed {
  uint64_t all = 0;    // workspace, states and stack
  uint64_t stack = 0;  // 0: unknown
};
// Requires one variant, as write_c_form does.
Status write_static_form(const std::vector<bundle::CompiledVariant>& variants, const std::string& stem,
                         const CompileOptions& options, const ModelFacts& facts, CompileReport& report,
                         RamNeed& need);
// `kernels`: those of CompiledCode.
Status write_c_form(const std::vector<bundle::CompiledVariant>& variants,
                    const std::vector<loop::Kernel>& kernels, const std::string& stem,
                    const CompileOptions& options, const ModelFacts& facts, CompileReport& report,
                    RamNeed& need);

}  // namespace quernel
