// What outputs may be off by reference data: tolerance.json beside a model, else ONNX's defaults.
#pragma once

#include <optional>
#include <string>

#include "json.h"
#include "quernel/compiler.h"
#include "support/dtype.h"
#include "tensor_file_compare.h"

namespace quernel::tools {

using tensor_file::Tolerance;

// Of an output: what tolerance.json says under "outputs", else at its top level, else ONNX's defaults for the
// dtype. `file` null: there is none.
Tolerance tolerance_of(const Json* file, const std::string& output, qnl_dtype dtype);

// The same for results of Fourier transforms: without a file also 1e-6 of the largest element is allowed.
// Stored answers come from f32 transforms, whose elements are all off by some 1e-7 of the largest, also where
// the true value is 0; there no relative tolerance helps.
Tolerance fourier_tolerance_of(const Json* file, const std::string& output,
                               const tensor_file::HostTensor& expected);

// What `--precision`, `--weights` and `--activations` round.
struct Precision {
  DType weights = DType::kF32;
  bool operands = false;     // of products with large weights, to the dtype of these
  bool activations = false;  // of products with quantised weights, to i8
  // The share of an output's largest element that it may be off by; 0 where nothing is rounded.
  double share = 0;
  bool rounds() const { return weights != DType::kF32 || activations; }
};
// `share`: as --precision-limit says; nullopt: as measured for networks (tools/README.md).
Precision precision_of(const CompileOptions& options, std::optional<double> share = std::nullopt);
std::string to_string(const Precision& precision);  // "bf16 weights and operands"

// The same with what is rounded to f16 or bf16: that share of the largest element is allowed, too.
Tolerance precision_tolerance_of(const Tolerance& tolerance, const Precision& precision,
                                 const tensor_file::HostTensor& expected);

}  // namespace quernel::tools
