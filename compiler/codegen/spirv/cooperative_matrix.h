// SPV_KHR_cooperative_matrix and SPV_KHR_bfloat16, which the glslang and SPIRV-Tools of 2023 do not know.
#pragma once

#include <cstdint>
#include <vector>

namespace quernel::codegen {

// Completes matrix types: glslang's spirv_type gives them literals, component (VkComponentTypeKHR: f16, bf16, f32, and
// integers of 8 and 32 bits) and use (0: a, 1: b, 2: sums), in place of the ids of component type, scope, rows, columns and
// use. Rows and columns are specialisation constants (QNL_SPIRV_MATRIX_SHAPE). Requires a module that declares those.
// Modules without matrices stay as they are.
void complete_matrix_types(std::vector<uint32_t>& words);

// Returns whether matrices with complete types have integers.
bool has_integer_matrices(const std::vector<uint32_t>& words);

// Returns the module in terms of SPV_NV_cooperative_matrix, which differs in the types' use and in how the order of
// elements is given, so that tools that know it check or print everything else. bf16 is f16 there, and signs are not given.
std::vector<uint32_t> in_terms_of_nv(const std::vector<uint32_t>& words);

}  // namespace quernel::codegen
