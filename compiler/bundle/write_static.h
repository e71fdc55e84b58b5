// write_static: stores a program without a runtime as files: a static library or C99, a header, a CMake
// package. All appear or none: they are written beside their destinations and renamed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bundle/model_header.h"
#include "codegen/c/print_program.h"
#include "codegen/llvm/static_archive.h"
#include "codegen/static_program.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::bundle {

// The program's name: the last part of the path that its files begin with ("out/digits" -> "digits").
std::string static_name(const std::string& stem);
// Invalid input where the name does not do for a CMake package.
Status check_static_name(const std::string& name);

// Writes <stem>.a, <stem>.h and <stem, lower-case>-config.cmake, which finds the other two beside it; returns
// their paths. The bytes depend on the program, the archive and the stem's last part only.
Expected<std::vector<std::string>> write_static(const codegen::StaticProgram& program,
                                                const codegen::StaticArchive& archive, const Target& target,
                                                const std::string& stem);

// Writes <stem>.c, <stem>.h, <stem>_memory.c and, where the program has constants, <stem>_weights.c. `facts`:
// the estimates for the header.
Expected<std::vector<std::string>> write_c(const codegen::StaticProgram& program,
                                           const codegen::CProgram& text,
                                           const std::optional<CodeFacts>& facts, const std::string& stem);

}  // namespace quernel::bundle
