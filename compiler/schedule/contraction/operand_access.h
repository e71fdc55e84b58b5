// A contraction's access to its operands: through their movement ops, as strides along its axes.
#pragma once

#include <optional>
#include <vector>

#include "graph/index_map.h"
#include "graph/ir.h"

namespace quernel::schedule {

struct OperandAccess {
  ValueId base = kNoValue;         // the stored value that is read
  std::vector<IndexExpr> indices;  // of the base, over the contraction's axes
  std::vector<IndexGuard> guards;  // an element outside a guard is `fill`
  double fill = 0;                 // NaN: the guards have different fills
  bool affine = false;
  bool direct() const { return affine && guards.empty(); }
};
// Returns the operand seen through its movement ops. `operand` is 0 or 1.
OperandAccess resolve_operand(const Graph& graph, const Node& contract, int operand);

// A quantised constant (graph/quantized.h) as an operand, as it is packed.
struct QuantizedOperand {
  int bits = 4;        // 2, 4 or 8: the fewest that hold all elements
  int64_t middle = 0;  // what is subtracted from elements and zero points, so that elements are signed
  DType scales = DType::kF32;
  std::optional<DType> zeros;  // i8 or f32; nullopt: all are `middle`
  std::vector<int64_t>
      groups;  // per dim of the stored value: neighbours that share a scale; 0: all of them do
  bool operator==(const QuantizedOperand&) const = default;
};

// Returns how a quantised constant is packed. Requires `v` to be one.
QuantizedOperand quantized_operand(const Graph& graph, ValueId v);

// The parts of rows of bytes (dequantize_rows) as they are stored, one element after another.
struct RowsOfBytes {
  std::vector<ValueId> digits;  // of an element, the most significant first
  ValueId scales = kNoValue, sums = kNoValue;
  int64_t group = 0, base = 0, factor = 1;  // factor: of the sums
  int64_t row = 0;  // elements of a row, where it has one scale and sums are integers; else 0
};
// Returns nullopt if `v` is something else, or if a part need not be stored so: constants, inputs, outputs, other views
// than reshapes.
std::optional<RowsOfBytes> rows_of_bytes(const Graph& graph, ValueId v);

// Strides of an operand, in elements, along the contraction's axes.
struct OperandStrides {
  Shape axis;
  Dim offset = 0;
  bool constant = false;
  DType dtype = DType::kF32;
  std::optional<QuantizedOperand> quantized;  // of a constant
  int64_t group_of_bytes = 0;                 // of dequantize_rows: its group; else 0
  int64_t row_of_bytes = 0;                   // of dequantize_rows: RowsOfBytes::row
  int digits = 1;                             // of dequantize_rows
  std::vector<char> copyable;                 // per axis: a permuted copy would be contiguous along it
  std::vector<int> dim;  // per axis: the dim of the stored value it runs along; -1: none, -2: several
  Shape step;            // per axis: its step along that dim
  Shape first;           // per dim of the stored value: its index where all axes are 0
  Shape dim_strides;
  std::vector<IndexGuard>
      guards;  // elements outside are zero; an im2row buffer or boundary-clipped windows handle them
};
// Requires an affine access. `dim_strides`: elements per step of each dim of the stored value.
OperandStrides operand_strides(const Graph& graph, const OperandAccess& access, const Shape& dim_strides,
                               const Dim& offset, size_t axes);

}  // namespace quernel::schedule
