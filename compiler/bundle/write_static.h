// Stores a program without a runtime as files: a static library or C99, a header, a CMake package. All files
// appear or none: they are written next to their destinations and renamed.
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

// Returns the program's name: the last part of its files' common path ("out/digits" -> "digits").
std::string static_name(const std::string& stem);
// Returns invalid input if the name cannot name a CMake package.
Status check_static_name(const std::string& name);

// Writes <stem>.a, <stem>.h and <stem, lower-case>-config.cmake, which finds the other two next to it.
// Returns their paths. The bytes depend only on the program, the archive and the stem's last part.
Expected<std::vector<std::string>> write_static(const codegen::StaticProgram& program,
                                                const codegen::StaticArchive& archive, const Target& target,
                                                const std::string& stem);

// Writes <stem>.c, <stem>.h, <stem>_memory.c and, if the program has constants, <stem>_weights.c. `facts`:
// the estimates for the header.
Expected<std::vector<std::string>> write_c(const codegen::StaticProgram& program,
                                           const codegen::CProgram& text,
                                           const std::optional<CodeFacts>& facts, const std::string& stem);

}  // namespace quernel::bundle
