// The description of a bundle that quernel-run prints, and texts shared with the rest of the program.
#pragma once

#include <stdint.h>

#include <string>
#include <vector>

#include "quernel/runtime.hpp"

namespace quernel::run {

// Returns "f32[1,3]".
std::string type_text(const qnl_tensor& tensor);
// Returns a dim of a signature: "batch" or "64".
std::string dim_text(const Bundle& bundle, uint32_t entry, qnl_tensor_role role, uint32_t index,
                     uint32_t dim);
std::vector<qnl_tensor> tensors_of(const Bundle& bundle, uint32_t entry, qnl_tensor_role role);

std::string json_string(const char* text);
// Returns the text for people, on one line.
std::string shown(const char* text);
std::string json_number(double value);
// Returns an object with name, dtype, shape and bytes.
std::string json_tensor(const qnl_tensor& tensor);

void list_text(const Bundle& bundle);
void list_json(const Bundle& bundle);

}  // namespace quernel::run
