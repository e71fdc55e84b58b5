// Finds the quernel-run that is built for a device.
#pragma once

#include <optional>
#include <string>

#include "schemas/kernel_abi.h"
#include "support/expected.h"

namespace quernel::tools {

// What an ELF program is for; none where the file is no program of a known architecture.
struct ProgramKind {
  qnl_arch arch = QNL_ARCH_NONE;
  bool is_static = false;  // needs no libraries
};
std::optional<ProgramKind> read_program_kind(const std::string& file);

enum class RunnerKind {
  kAny,
  kStatic,  // one that needs no libraries, where there is one
  kVulkan,  // only one that can open a Vulkan device: it needs the loader, which static ones cannot load
};

// `file` where it is given (--run-binary). Else that of the architecture: beside this program, in
// ../lib/quernel/ARCH beside it, in the other build folders where this one runs from one.
Expected<std::string> find_run_binary(const std::string& file, qnl_arch arch, RunnerKind wanted);

}  // namespace quernel::tools
