// What quernel-run says of an output.
#pragma once

#include <string>

#include "quernel/runtime.h"
#include "tensor_file.h"

namespace quernel::run {

// Type, range, first elements and, of a row of scores, the five best.
void print_output(const qnl_tensor& t, const tensor_file::HostTensor& tensor);
std::string json_output(const qnl_tensor& t, const tensor_file::HostTensor& tensor);

}  // namespace quernel::run
