// Functions of C that are instructions of some processors: named as such where the C compiler says that it has them
// (ACLE's macros), else plain C with the same results.
#pragma once

#include <string>
#include <vector>

namespace quernel::codegen {

struct CDefinition {
  std::string name, text;
};

// Each only uses those before it.
std::vector<CDefinition> instruction_definitions();

}  // namespace quernel::codegen
