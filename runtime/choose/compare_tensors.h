// Compares a computed tensor with what is expected of it, by the tolerances of a test vector. The one place
// that knows when a result is right: the choice of a device and the tools' tensor files both ask here.
#pragma once

#include <stdint.h>

#include "quernel/runtime.h"

namespace quernel::runtime {

bool is_float(qnl_dtype dtype);
// Element as a number; packed types have two per byte.
double element_value(qnl_dtype dtype, const void* data, uint64_t index);

// True when `found` is what is expected. Else false, and in the text, of `bytes` bytes, what is wrong, with
// the worst element and its place. Both have data of the bytes that they say.
bool compare_tensors(const qnl_test_tensor& expected, const qnl_tensor& found, char* text, uint64_t bytes);

}  // namespace quernel::runtime
