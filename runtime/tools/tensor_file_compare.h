// Compares a computed tensor with reference data: |found - expected| <= atol + rtol * |expected|, integers
// and booleans exactly, NaN only where NaN is expected, infinities exactly.
#pragma once

#include "tensor_file.h"

namespace quernel::tensor_file {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
  std::optional<double> mean_atol;  // bounds the mean of |found - expected|
  bool top1 = false;                // the largest value of every row (last axis) is in the same place
};

// How far a computed tensor is from reference data; of floats, over what is finite in both.
struct Deviation {
  double absolute = 0;  // the largest |found - expected|
  double share = 0;     // that over the largest |expected|
};
Deviation deviation_of(const HostTensor& expected, const HostTensor& found);

// What is wrong, with the worst element and its place; nothing when all is within tolerance.
Error compare(const HostTensor& expected, const HostTensor& found, const Tolerance& tolerance);

bool is_float(qnl_dtype dtype);
// The largest |element| that is finite.
double largest_of(const HostTensor& tensor);

}  // namespace quernel::tensor_file
