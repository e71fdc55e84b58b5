// Operators that read or write elements at computed places, and those that find places.
#include <algorithm>
#include <cmath>

#include "frontends/tflite/operators.h"

namespace quernel::tflite_import {
namespace {

Status expect_indices(NodeImport& n, int i) { return n.expect_dtypes(i, {DType::kI32, DType::kI64}); }

// The dims from `first` on, before `last`.
Dim product(const Shape& dims, size_t first, size_t last) {
  Dim result = 1;
  for (size_t i = first; i < last; ++i) result *= dims[i];
  return result;
}

Shape joined(std::initializer_list<Shape> parts) {
  Shape all;
  for (const Shape& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

// With batch dims, each entry of them has its own indices: they are moved to rows of all batches in a line.
Status import_gather(NodeImport& n) {
  const auto& options = n.options<tflite::GatherOptions>();
  QUERNEL_CHECK(expect_indices(n, 1));
  Shape dims = n.shape(n.in(0)), places = n.shape(n.in(1));
  QUERNEL_TRY(int64_t axis, n.axis(options.axis(), n.rank(n.in(0))));
  int64_t batch = options.batch_dims() < 0 ? options.batch_dims() + n.rank(n.in(1)) : options.batch_dims();
  if (batch == 0) return n.output(n.build.take(n.in(0), n.in(1), axis));
  if (batch < 0 || batch > axis || batch > n.rank(n.in(1)))
    return n.bad_option("batch_dims", "at most the axis and the rank of the indices", std::to_string(batch));
  size_t b = static_cast<size_t>(batch), a = static_cast<size_t>(axis);
  for (size_t i = 0; i < b; ++i) QUERNEL_CHECK(n.require_equal(dims[i], places[i], "a batch dim"));
  Dim batches = product(dims, 0, b), outer = product(dims, b, a), size = dims[a],
      inner = product(dims, a + 1, dims.size()), count = product(places, b, places.size());
  ValueId x = n.build.permute(n.build.reshape(n.in(0), {batches, outer, size, inner}), {0, 2, 1, 3});
  ValueId first =
      n.binary(BinaryOp::k_mul, n.positions(n.dtype(n.in(1)), batches, 1), n.number(n.dtype(n.in(1)), size));
  ValueId rows = n.binary(BinaryOp::k_add, n.build.reshape(n.in(1), {batches, count}), first);
  ValueId y = n.build.take(n.build.reshape(x, {batches * size, outer, inner}), rows, 0);
  y = n.build.permute(y, {0, 2, 1, 3});
  Shape result =
      joined({Shape(dims.begin(), dims.begin() + axis), Shape(places.begin() + batch, places.end()),
              Shape(dims.begin() + axis + 1, dims.end())});
  return n.output(n.build.reshape(y, result));
}

Status import_gather_nd(NodeImport& n) {
  QUERNEL_CHECK(expect_indices(n, 1));
  Attributes attributes;
  attributes.ints = {0};
  return n.output(n.build.add(OpKind::k_gather_nd, {n.in(0), n.in(1)}, std::move(attributes)));
}

// Operands: indices, table.
Status import_embedding_lookup(NodeImport& n) {
  QUERNEL_CHECK(expect_indices(n, 0));
  bool to_real = n.is_quantized(1) && n.out_dtype(0) == DType::kF32;
  if (to_real && !n.in_quantization(1).is_per_tensor()) return n.output(n.build.take(n.real(1), n.in(0), 0));
  ValueId rows = n.build.take(n.in(1), n.in(0), 0);
  return n.output(to_real ? dequantize(n, rows, n.in_quantization(1)) : rows);
}

// Updates of one place are added, as those of bool are combined by or.
Status import_scatter_nd(NodeImport& n) {
  QUERNEL_CHECK(expect_indices(n, 0));
  QUERNEL_TRY(Shape shape, n.dims_in(2, "the shape"));
  bool logical = n.dtype(n.in(1)) == DType::kBool;
  ValueId updates = logical ? n.build.cast(n.in(1), DType::kU8) : n.in(1);
  ValueId zeros = n.full(n.dtype(updates), shape, 0);
  ValueId y = n.build.scatter(OpKind::k_scatter_nd, zeros, n.in(0), updates, 0,
                              logical ? ScatterMode::kMax : ScatterMode::kAdd);
  return n.output(logical ? n.build.cast(y, DType::kBool) : y);
}

// Operands: indices, the result's shape, values, what is elsewhere.
Status import_sparse_to_dense(NodeImport& n) {
  n.options<tflite::SparseToDenseOptions>();  // whether indices are checked changes no right result
  QUERNEL_CHECK(expect_indices(n, 0));
  QUERNEL_TRY(Shape shape, n.dims_in(1, "the shape"));
  Shape places = n.shape(n.in(0));
  ValueId indices = n.in(0);
  if (places.empty()) indices = n.build.reshape(indices, {1, 1});
  if (places.size() == 1) indices = n.build.reshape(indices, {places[0], 1});
  Dim count = n.shape(indices)[0];
  ValueId values = n.build.broadcast_to(n.in(2), {count});
  ValueId y = n.build.broadcast_to(n.build.reshape(n.in(3), {}), shape);
  return n.output(n.build.scatter(OpKind::k_scatter_nd, y, indices, values, 0, ScatterMode::kSet));
}

// Operands: indices, depth, the values on and off.
Status import_one_hot(NodeImport& n) {
  int64_t given = n.options<tflite::OneHotOptions>().axis();
  QUERNEL_CHECK(expect_indices(n, 0));
  QUERNEL_TRY(Shape depth, n.dims_in(1, "the depth"));
  if (depth.size() != 1) return n.invalid("expected one depth, found " + std::to_string(depth.size()));
  QUERNEL_CHECK(n.require_at_least(depth[0], 0, "the depth"));
  int rank = n.rank(n.in(0));
  QUERNEL_TRY(int64_t axis, n.axis(given, rank + 1));
  Shape places = n.shape(n.in(0));
  places.insert(places.begin() + axis, Dim(1));
  ValueId numbers = n.positions(n.dtype(n.in(0)), depth[0], rank - static_cast<int>(axis));
  ValueId here = n.binary(BinaryOp::k_eq, n.build.reshape(n.in(0), places), numbers);
  return n.output(n.build.where(here, n.build.reshape(n.in(2), {}), n.build.reshape(n.in(3), {})));
}

// The first of equal elements comes first.
Status import_topk_v2(NodeImport& n) {
  QUERNEL_TRY(Shape count, n.dims_in(1, "the count"));
  QUERNEL_CHECK(n.expect_rank(0, 1, 8));
  if (count.size() != 1) return n.invalid("expected one count, found " + std::to_string(count.size()));
  QUERNEL_CHECK(n.require_at_least(count[0], 0, "the count"));
  int64_t axis = n.rank(n.in(0)) - 1;
  QUERNEL_CHECK(n.require_at_least(n.shape(n.in(0)).back() - count[0], 0, "what is left of a row"));
  ValueId places = n.build.argsort(n.in(0), axis, count[0], true);
  Attributes along;
  along.ints = {axis};
  ValueId values = n.build.add(OpKind::k_gather_elements, {n.in(0), places}, std::move(along));
  return n.set_outputs({values, n.build.cast(places, n.out_dtype(1))});
}

// The places of all elements that are not zero, row by row.
Status import_where(NodeImport& n) {
  Shape dims = n.shape(n.in(0));
  ValueId mask = n.in(0);
  if (n.dtype(mask) != DType::kBool) mask = n.binary(BinaryOp::k_ne, mask, 0.0);
  ValueId places = n.positions_where(n.build.reshape(mask, {element_count(dims)}));
  std::vector<ValueId> columns;
  for (size_t i = 0; i < dims.size(); ++i) {
    ValueId step = n.number(DType::kI64, product(dims, i + 1, dims.size()));
    ValueId column = n.binary(BinaryOp::k_fdiv, places, step);
    if (dims.size() > 1) column = n.binary(BinaryOp::k_mod, column, n.number(DType::kI64, dims[i]));
    columns.push_back(n.build.reshape(column, {n.shape(places)[0], 1}));
  }
  if (columns.empty()) return n.no_kernel();
  ValueId y = columns.size() == 1 ? columns[0] : n.build.cat(columns, 1);
  return n.output(n.build.cast(y, n.out_dtype(0)));
}

// Operands: x, the number of elements of each batch entry that are reversed.
Status import_reverse_sequence(NodeImport& n) {
  const auto& options = n.options<tflite::ReverseSequenceOptions>();
  QUERNEL_CHECK(expect_indices(n, 1));
  Shape dims = n.shape(n.in(0));
  int rank = n.rank(n.in(0));
  QUERNEL_TRY(int64_t along, n.axis(options.seq_dim(), rank));
  QUERNEL_TRY(int64_t batch, n.axis(options.batch_dim(), rank));
  if (along == batch) return n.bad_option("seq_dim", "another dim than batch_dim", std::to_string(along));
  DType dtype = n.dtype(n.in(1));
  ValueId place = n.positions(dtype, dims[static_cast<size_t>(along)], rank - 1 - static_cast<int>(along));
  Shape column(static_cast<size_t>(rank - batch), Dim(1));
  column[0] = dims[static_cast<size_t>(batch)];
  ValueId length = n.build.reshape(n.in(1), column);
  ValueId mirrored = n.binary(BinaryOp::k_sub, n.binary(BinaryOp::k_sub, length, 1.0), place);
  ValueId from = n.build.where(n.binary(BinaryOp::k_lt, place, length), mirrored, place);
  Attributes attributes;
  attributes.ints = {along};
  return n.output(n.build.add(OpKind::k_gather_elements, {n.in(0), n.build.broadcast_to(from, dims)},
                              std::move(attributes)));
}

namespace {

Status segments(NodeImport& n, ScatterMode mode, double start, const Dim& count) {
  QUERNEL_CHECK(expect_indices(n, 1));
  QUERNEL_CHECK(n.expect_rank(0, 1, 8));
  QUERNEL_CHECK(n.expect_rank(1, 1, 1));
  QUERNEL_CHECK(n.require_equal(n.shape(n.in(1))[0], n.shape(n.in(0))[0], "the number of segment numbers"));
  Shape dims = n.shape(n.in(0));
  dims[0] = count;
  ValueId template_value = n.full(n.dtype(n.in(0)), dims, start);
  // Rows of a negative number belong to no segment.
  DType index = n.dtype(n.in(1));
  ValueId place = n.build.where(n.binary(BinaryOp::k_lt, n.in(1), 0.0), n.number(index, count), n.in(1));
  return n.output(n.build.scatter(OpKind::k_scatter_rows, template_value, place, n.in(0), 0, mode));
}

Status unsorted_segments(NodeImport& n, ScatterMode mode, double start) {
  if (mode != ScatterMode::kAdd && mode != ScatterMode::kMul && !n.is_float(0)) return n.no_kernel();
  QUERNEL_TRY(Shape count, n.dims_in(2, "the number of segments"));
  if (count.size() != 1)
    return n.invalid("expected one number of segments, found " + std::to_string(count.size()));
  QUERNEL_CHECK(n.require_at_least(count[0], 0, "the number of segments"));
  return segments(n, mode, start, count[0]);
}

constexpr double kLargest = 3.4028234663852886e38;  // of f32: what empty segments have

}  // namespace

// The last segment number says how many segments there are.
Status import_segment_sum(NodeImport& n) {
  QUERNEL_TRY(std::vector<int64_t> numbers, n.ints_in(1, "the segment numbers"));
  return segments(n, ScatterMode::kAdd, 0, numbers.empty() ? 0 : numbers.back() + 1);
}
Status import_unsorted_segment_sum(NodeImport& n) { return unsorted_segments(n, ScatterMode::kAdd, 0); }
Status import_unsorted_segment_prod(NodeImport& n) { return unsorted_segments(n, ScatterMode::kMul, 1); }
Status import_unsorted_segment_max(NodeImport& n) {
  return unsorted_segments(n, ScatterMode::kMax, -kLargest);
}
Status import_unsorted_segment_min(NodeImport& n) {
  return unsorted_segments(n, ScatterMode::kMin, kLargest);
}

// The number of boundaries that an element is not below.
Status import_bucketize(NodeImport& n) {
  std::vector<float> boundaries = elements(n.options<tflite::BucketizeOptions>().boundaries());
  Shape dims = n.shape(n.in(0)), column = dims;
  column.push_back(1);
  ValueId limits = n.build.constant(f32_tensor({static_cast<int64_t>(boundaries.size())}, boundaries));
  ValueId x = n.build.reshape(n.build.cast(n.in(0), DType::kF32), column);
  ValueId above = n.build.cast(n.binary(BinaryOp::k_ge, x, limits), DType::kI32);
  return n.output(n.build.reduce(OpKind::k_reduce_sum, above, {static_cast<int64_t>(dims.size())}, false));
}

namespace {

// Of [rows, columns]: whether row and column are the same.
ValueId on_diagonal(NodeImport& n, const Dim& rows, const Dim& columns) {
  return n.binary(BinaryOp::k_eq, n.positions(DType::kI64, rows, 1), n.positions(DType::kI64, columns));
}

}  // namespace

Status import_matrix_diag(NodeImport& n) {
  QUERNEL_CHECK(n.expect_rank(0, 1, 7));
  Shape dims = n.shape(n.in(0)), square = dims;
  square.push_back(dims.back());
  Shape row = dims;
  row.insert(row.end() - 1, Dim(1));
  ValueId x = n.build.broadcast_to(n.build.reshape(n.in(0), row), square);
  return n.output(n.build.where(on_diagonal(n, dims.back(), dims.back()), x, n.scalar(n.dtype(x), 0)));
}

// Operands: matrices, their new diagonals.
Status import_matrix_set_diag(NodeImport& n) {
  QUERNEL_CHECK(n.expect_rank(0, 2, 8));
  Shape dims = n.shape(n.in(0));
  Dim rows = dims[dims.size() - 2], columns = dims.back();
  if (!(rows == columns)) return n.no_kernel();
  Shape row = n.shape(n.in(1));
  row.insert(row.end() - 1, Dim(1));
  return n.output(n.build.where(on_diagonal(n, rows, columns), n.build.reshape(n.in(1), row), n.in(0)));
}

// Operands: start, limit, step.
Status import_range(NodeImport& n) {
  QUERNEL_TRY(double start, n.float_in(0, "the start"));
  QUERNEL_TRY(double limit, n.float_in(1, "the limit"));
  QUERNEL_TRY(double step, n.float_in(2, "the step"));
  double count = step == 0 ? -1 : std::max(std::ceil((limit - start) / step), 0.0);
  if (!(count >= 0 && count <= double{1 << 30}))
    return n.invalid("expected a step that leads from the start to the limit, found " + std::to_string(step));
  DType dtype = n.out_dtype(0);
  ValueId numbers = n.positions(dtype, static_cast<int64_t>(count));
  return n.output(n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, numbers, step), start));
}

}  // namespace quernel::tflite_import
