// The interpreter's parts, one function per op family, and the element access they share. Operands and
// attributes have passed the op table's rules; results are dense, row-major tensors of the given type.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir.h"

namespace quernel::interpreter {

using Operands = std::vector<const Tensor*>;
struct ResultType {
  DType dtype;
  std::vector<int64_t> dims;
  int64_t count() const;
};

Expected<Tensor> run_elementwise(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_bitcast(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_movement(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_cat(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_reduce(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_scan(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_sort(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_contract(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_winograd(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_dequantize(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_dequantize_rows(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_gather(const Node& node, const Operands& operands, const ResultType& type);
Expected<Tensor> run_scatter(const Node& node, const Operands& operands, const ResultType& type);

// ---- element access: `count` elements from element `first` on
void load(const Tensor& tensor, int64_t first, int64_t count, double* out);  // u64 as its value
void load(const Tensor& tensor, int64_t first, int64_t count,
          int64_t* out);  // integers and bool; u64 as its bits
void store(DType dtype, uint8_t* data, int64_t first, int64_t count,
           const double* values);  // floats: to nearest even
void store(DType dtype, uint8_t* data, int64_t first, int64_t count, const int64_t* values);  // integers wrap
// The value after one rounding to the dtype.
double round_to(DType dtype, double value);
// The value as the dtype's elements hold it: integers sign- or zero-extended from the low bits.
int64_t wrap_to(DType dtype, int64_t value);
// Float to integer: toward zero, saturating, NaN gives 0.
int64_t saturate_to(DType dtype, double value);

// max and min of floats: NaN if either is one, and +0 above -0, so that they are commutative and associative
// to the bit.
double maximum(double x, double y);
double minimum(double x, double y);

// i4 and u4 as one byte per element and back, for code that addresses single elements.
std::vector<uint8_t> unpack(const Tensor& tensor);
std::vector<uint8_t> pack(const std::vector<uint8_t>& elements);

// An affine form without symbols.
struct StaticForm {
  std::vector<int64_t> coefficients;
  int64_t offset = 0;
};
StaticForm static_form(const AffineForm& form);

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& dims);

// Visits each row (all elements along the last dim) of a box in row-major order: visit(offsets) with, for
// each stride list, the sum of index * stride at the row's first element. Rank 0 is one row of one element;
// empty boxes have no rows.
template <class Visit>
void for_each_row(const std::vector<int64_t>& dims, const std::vector<std::vector<int64_t>>& strides,
                  Visit visit) {
  for (int64_t d : dims)
    if (d == 0) return;
  std::vector<int64_t> index(dims.size(), 0), offsets(strides.size(), 0);
  while (true) {
    visit(offsets.data());
    int d = static_cast<int>(dims.size()) - 2;
    for (; d >= 0; --d) {
      for (size_t s = 0; s < strides.size(); ++s) offsets[s] += strides[s][d];
      if (++index[d] < dims[d]) break;
      for (size_t s = 0; s < strides.size(); ++s) offsets[s] -= strides[s][d] * dims[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace quernel::interpreter
