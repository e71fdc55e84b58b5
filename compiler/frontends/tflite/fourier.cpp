// RFFT2D, and operators on its result. A complex tensor is a value with one more dim, of the real and the imaginary part.
#include "frontends/shared/fourier.h"

#include "frontends/tflite/operators.h"

namespace quernel::tflite_import {
namespace {

ValueId part(NodeImport& n, int64_t i) {
  Shape dims = n.shape(n.in(0)), starts(dims.size(), Dim(0)), stops = dims;
  starts.back() = i;
  stops.back() = i + 1;
  dims.pop_back();
  return n.build.reshape(n.build.slice(n.in(0), starts, stops), dims);
}

Status give_part(NodeImport& n, int64_t i) {
  if (!n.is_complex(0)) return n.invalid("expected a complex operand, found " + to_string(n.shape(n.in(0))));
  return n.output(part(n, i));
}

}  // namespace

// Operands: real values [..., rows, columns], and the sizes that both dims are cut or padded to.
Status import_rfft2d(NodeImport& n) {
  QUERNEL_CHECK(n.expect_dtypes(0, {DType::kF32}));
  QUERNEL_CHECK(n.expect_rank(0, 2, 8));
  QUERNEL_TRY(std::vector<int64_t> lengths, n.ints_in(1, "the sizes"));
  if (lengths.size() != 2) return n.invalid("expected two sizes, found " + std::to_string(lengths.size()));
  for (int64_t length : lengths) QUERNEL_CHECK(check_transform_length(n, length));
  Shape dims = n.shape(n.in(0));
  Dim outer = element_count(Shape(dims.begin(), dims.end() - 2)), rows = dims[dims.size() - 2];
  FourierTransform along_rows{lengths[1]}, along_columns{lengths[0]};
  int64_t results = lengths[1] / 2 + 1;
  ValueId x = n.build.reshape(n.in(0), {outer * rows, dims.back(), 1, 1});
  x = fit_transform_length(n, x, lengths[1]);
  QUERNEL_TRY(x, fourier_transform(n, x, along_rows, results));
  x = fit_transform_length(n, n.build.reshape(x, {outer, rows, results, 2}), lengths[0]);
  if (lengths[0] > 1) {
    QUERNEL_TRY(x, fourier_transform(n, x, along_columns, lengths[0]));
  }
  dims[dims.size() - 2] = lengths[0];
  dims.back() = results;
  dims.push_back(2);
  return n.output(n.build.cast(n.build.reshape(x, dims), DType::kF32));
}

Status import_real(NodeImport& n) { return give_part(n, 0); }
Status import_imag(NodeImport& n) { return give_part(n, 1); }

Status import_complex_abs(NodeImport& n) {
  if (!n.is_complex(0)) return give_part(n, 0);
  ValueId square = n.binary(BinaryOp::k_mul, n.in(0), n.in(0));
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, square, {n.rank(square) - 1}, false);
  return n.output(n.unary(UnaryOp::k_sqrt, sum));
}

}  // namespace quernel::tflite_import
