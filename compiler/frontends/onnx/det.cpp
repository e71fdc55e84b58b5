// Det: elimination with partial pivoting, unrolled.
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {

Status import_det(NodeImport& n) {
  constexpr int64_t kMaxSize = 32;
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(n.in(0)));
  if (dims.size() < 2 || dims.back() != dims[dims.size() - 2] || dims.back() < 1)
    return n.invalid("expected square matrices, found " + to_string(n.shape(n.in(0))));
  if (dims.back() > kMaxSize)
    return n.refuse("matrices of more than 32 rows are not supported, found " + std::to_string(dims.back()));
  int64_t count = 1;
  for (size_t i = 0; i + 2 < dims.size(); ++i) count *= dims[i];
  ValueId rest = n.reshape(n.widen(n.in(0)), {count, dims.back(), dims.back()});
  DType dtype = n.dtype(rest);
  ValueId determinant = kNoValue, one = n.scalar(dtype, 1), minus_one = n.scalar(dtype, -1);
  for (int64_t size = dims.back(); size > 0; --size) {
    auto cut = [&](int64_t row, int64_t row_end, int64_t col, int64_t col_end) {
      return n.build.slice(rest, {0, row, col}, {count, row_end, col_end});
    };
    if (size == 1) {
      determinant = determinant == kNoValue ? rest : n.binary(BinaryOp::k_mul, determinant, rest);
      break;
    }
    ValueId best =
        n.build.reduce(OpKind::k_reduce_argmax, n.unary(UnaryOp::k_abs, cut(0, size, 0, 1)), {1}, true);
    Attributes rows;
    rows.ints = {1};
    ValueId pivot_row = n.build.add(OpKind::k_gather_elements,
                                    {rest, n.build.broadcast_to(best, {count, 1, size})}, std::move(rows));
    ValueId pivot = n.build.slice(pivot_row, {0, 0, 0}, {count, 1, 1});
    ValueId in_place = n.binary(BinaryOp::k_eq, best, 0.0);
    ValueId factor = n.binary(BinaryOp::k_mul, pivot, n.build.where(in_place, one, minus_one));
    determinant = determinant == kNoValue ? factor : n.binary(BinaryOp::k_mul, determinant, factor);
    // The first row takes the pivot row's place; a zero pivot makes the product zero whatever follows.
    ValueId number = n.binary(BinaryOp::k_add, n.positions(DType::kI64, size - 1, 1), 1.0);
    ValueId others =
        n.build.where(n.binary(BinaryOp::k_eq, number, best), cut(0, 1, 0, size), cut(1, size, 0, size));
    ValueId divisor = n.build.where(n.binary(BinaryOp::k_eq, pivot, 0.0), one, pivot);
    ValueId multiple =
        n.binary(BinaryOp::k_div, n.build.slice(others, {0, 0, 0}, {count, size - 1, 1}), divisor);
    rest =
        n.binary(BinaryOp::k_sub, n.build.slice(others, {0, 0, 1}, {count, size - 1, size}),
                 n.binary(BinaryOp::k_mul, multiple, n.build.slice(pivot_row, {0, 0, 1}, {count, 1, size})));
  }
  std::vector<int64_t> result(dims.begin(), dims.end() - 2);
  return n.output(n.build.cast(n.reshape(determinant, result), n.dtype(n.in(0))));
}

}  // namespace quernel::onnx_import
