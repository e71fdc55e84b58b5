// Names of the model's nodes in comments of C, where who debugs or profiles a program looks for them.
#pragma once

#include <string>
#include <vector>

#include "codegen/static_program.h"

namespace quernel::codegen {

// Text of the model inside a comment, shortened to 160 characters.
std::string node_names_in_comment(const std::string& names);

// Returns, per kernel, the nodes that each of its calls computes, as node_names_in_comment has them: equal texts once.
std::vector<std::vector<std::string>> nodes_of_kernels(const StaticProgram& program);

}  // namespace quernel::codegen
