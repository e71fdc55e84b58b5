// The text that quernel-run prints for an output.
#pragma once

#include <string>

#include "quernel/runtime.h"
#include "tensor_file.h"

namespace quernel::run {

// Prints type, range and first elements; for a row of scores also the five best.
void print_output(const qnl_tensor& t, const tensor_file::HostTensor& tensor);
std::string json_output(const qnl_tensor& t, const tensor_file::HostTensor& tensor);

}  // namespace quernel::run
