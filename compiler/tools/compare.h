// Compares a computed tensor with reference data: |found - expected| <= atol + rtol * |expected|, integers
// and booleans exactly, NaN only where NaN is expected, infinities exactly.
#pragma once

#include <optional>
#include <string>

#include "json.h"
#include "support/dtype.h"
#include "tensor_file.h"

namespace quernel::tools {

struct Tolerance {
  double rtol = 1e-3, atol = 1e-7;
  std::optional<double> mean_atol;  // bounds the mean of |found - expected|
  bool top1 = false;                // the largest value of every row (last axis) is in the same place
};

// Of an output: what tolerance.json says under "outputs", else at its top level, else ONNX's defaults for the
// dtype. `file` null: there is none.
Tolerance tolerance_of(const Json* file, const std::string& output, qnl_dtype dtype);

// The same for results of Fourier transforms: without a file also 1e-6 of the largest element is allowed.
// Stored answers come from f32 transforms, whose elements are all off by some 1e-7 of the largest, also where
// the true value is 0; there no relative tolerance helps.
Tolerance fourier_tolerance_of(const Json* file, const std::string& output,
                               const tensor_file::HostTensor& expected);

// The same where weights are stored in `precision`: for f16 and bf16 some share of the largest element is
// allowed, too.
Tolerance precision_tolerance_of(const Tolerance& tolerance, DType precision,
                                 const tensor_file::HostTensor& expected);

// How far a computed tensor is from reference data; of floats, over what is finite in both.
struct Deviation {
  double absolute = 0;  // the largest |found - expected|
  double share = 0;     // that over the largest |expected|
};
Deviation deviation_of(const tensor_file::HostTensor& expected, const tensor_file::HostTensor& found);

// What is wrong, with the worst element and its place; nothing when all is within tolerance.
std::optional<std::string> compare(const tensor_file::HostTensor& expected,
                                   const tensor_file::HostTensor& found, const Tolerance& tolerance);

}  // namespace quernel::tools
