// Compares a computed tensor with its expected values, by the tolerances of a test vector. The choice of a
// device and the tools' tensor files both use this definition of a right result.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

bool is_float(qnl_dtype dtype);
// Returns an element as a number; packed types have two elements per byte.
double element_value(qnl_dtype dtype, const void* data, uint64_t index);

// Returns true if `found` is within the tolerances. Otherwise writes what is wrong, with the worst element
// and its index, to `text` of `bytes` bytes. Both tensors must have data of their stated bytes.
bool compare_tensors(const qnl_test_tensor& expected, const qnl_tensor& found, char* text, uint64_t bytes);

}  // namespace quernel::runtime
