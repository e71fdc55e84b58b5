// Compares a computed tensor with reference data: |found - expected| <= atol + rtol * |expected|. Integers,
// booleans and infinities must be equal, except for a share of integers; NaN is allowed only where NaN is
// expected.
#pragma once

#include "tensor_file.h"

namespace quernel::tensor_file {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
  std::optional<double> mean_atol;  // limits the mean of |found - expected|
  double max_share = 0;             // of the elements of an integer tensor: so many may differ by up to atol
  bool top1 = false;                // the largest value of every row (last axis) is at the same index
};

// The deviation of a computed tensor from reference data; for floats, over elements that are finite in both.
struct Deviation {
  double absolute = 0;  // the largest |found - expected|
  double share = 0;     // the same divided by the largest |expected|
};
Deviation deviation_of(const HostTensor& expected, const HostTensor& found);

// Returns what is wrong, with the worst element and its index; nothing if all is within tolerance.
Error compare(const HostTensor& expected, const HostTensor& found, const Tolerance& tolerance);

bool is_float(qnl_dtype dtype);
// Returns the largest |element| that is finite.
double largest_of(const HostTensor& tensor);

}  // namespace quernel::tensor_file
