// Kernels that show what a machine does at most, from the compiler's own code generation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/expected.h"
#include "targets/target.h"

namespace quernel::tools {

// A kernel with one input "x" and one output "y" of f32.
struct PeakKernel {
  std::string text;                           // in loop IR
  int64_t groups = 0, input = 0, output = 0;  // workgroups; elements
  double work = 0;                            // of a run: operations, or bytes read
  bool counts_bytes = false;
};

// "multiply_adds": chains of f32 multiply-adds in registers, two operations each.
PeakKernel multiply_adds(const Target& target, int64_t groups, int steps);
// "byte_products": int8 dot products with i32 accumulators in registers, two operations for each product.
PeakKernel byte_products(const Target& target, int64_t groups, int steps);
// "matrix_products": products of matrix units, of operands of `dtype` in shared memory, `times` times their steps. Requires
// that the target multiplies matrices of it.
PeakKernel matrix_products(const Target& target, DType dtype, int64_t groups, int times);
// Reads `bytes` of the input, a share for each workgroup, `sweeps` times over.
PeakKernel reads(const char* name, const Target& target, int64_t groups, int64_t bytes, int sweeps);

// Writes a bundle with an entry point for each kernel. Its name is the kernel's, and its item's flops or bytes_read are
// `work`.
Status write_peak_kernels(const std::vector<PeakKernel>& peak_kernels, const Target& target,
                          const std::string& path);

}  // namespace quernel::tools
