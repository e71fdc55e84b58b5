// FULLY_CONNECTED and BATCH_MATMUL.
#include <algorithm>

#include "frontends/shared/contraction.h"
#include "frontends/tflite/activation.h"
#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"
#include "frontends/tflite/recurrent.h"

namespace quernel::tflite_import {
namespace {

struct MatrixProduct {
  Shape batch;  // of the result
  bool transposed_x = false, transposed_y = false;
};

// [batch…, M, K] x [batch…, K, N]; operands have the result's rank, and batch dims of 1 where they broadcast.
ValueId multiply_matrices(ImportedNode& n, ValueId x, ValueId y, const MatrixProduct& product,
                          std::optional<DType> accumulator) {
  Shape dims_x = n.shape(x), dims_y = n.shape(y);
  size_t batch = product.batch.size();
  Dim rows = dims_x[batch + (product.transposed_x ? 1 : 0)],
      columns = dims_y[batch + (product.transposed_y ? 0 : 1)];
  ContractionBuilder c;
  std::vector<IndexExpr> index_x, index_y, index_out;
  for (size_t i = 0; i < batch; ++i) {
    IndexExpr axis = c.axis("b" + std::to_string(i), product.batch[i]);
    index_x.push_back(dims_x[i] == Dim(1) ? IndexExpr(0) : axis);
    index_y.push_back(dims_y[i] == Dim(1) ? IndexExpr(0) : axis);
    index_out.push_back(axis);
  }
  IndexExpr m = c.axis("m", rows), o = c.axis("n", columns);
  IndexExpr k = c.reduction("k", dims_x[batch + (product.transposed_x ? 0 : 1)]);
  for (IndexExpr e : product.transposed_x ? std::vector{k, m} : std::vector{m, k}) index_x.push_back(e);
  for (IndexExpr e : product.transposed_y ? std::vector{o, k} : std::vector{k, o}) index_y.push_back(e);
  index_out.insert(index_out.end(), {m, o});
  return c.emit(n, x, std::move(index_x), y, std::move(index_y), std::move(index_out), accumulator);
}

ValueId with_rank(ImportedNode& n, ValueId x, size_t rank) {
  Shape dims = n.shape(x);
  dims.insert(dims.begin(), rank - dims.size(), Dim(1));
  return n.build.reshape(x, dims);
}

}  // namespace

ValueId multiply_rows(ImportedNode& n, ValueId x, ValueId weights, std::optional<DType> accumulator) {
  Shape rows = n.shape(x), columns = n.shape(weights);
  for (const Shape& dims : {rows, columns})
    if (dims.size() != 2)
      return n.build.fail(n.invalid("expected matrices to be multiplied, found " + to_string(dims)));
  ContractionBuilder c;
  IndexExpr row = c.axis("m", rows[0]), column = c.axis("n", columns[0]);
  IndexExpr k = c.reduction("k", columns[1]);
  return c.emit(n, x, {row, k}, weights, {column, k}, {row, column}, accumulator);
}

Status import_fully_connected(NodeImport& n) {
  const auto& options = n.options<tflite::FullyConnectedOptions>();
  if (options.weights_format() != tflite::WeightsFormat::DEFAULT)
    return n.bad_option("weights_format", "DEFAULT", tflite::EnumNameWeightsFormat(options.weights_format()));
  if (options.quant_spec() && options.quant_spec()->size() > 0)
    return n.bad_option("quant_spec", "none", std::to_string(options.quant_spec()->size()) + " bytes");
  QUERNEL_CHECK(n.expect_rank(0, 1, 8));
  QUERNEL_CHECK(n.expect_rank(1, 2, 2));
  Shape dims = n.shape(n.in(0)), weights = n.shape(n.in(1));
  QUERNEL_TRY(int64_t depth, n.dim(weights[1]));
  QUERNEL_TRY(int64_t columns, n.dim(weights[0]));
  if (depth < 1) return n.invalid("expected weights of at least one input, found " + to_string(weights));
  if (n.has(2) && !(element_count(n.shape(n.in(2))) == Dim(columns)))
    return n.invalid("expected a bias of [" + std::to_string(columns) + "], found " +
                     to_string(n.shape(n.in(2))));
  Shape result{floordiv(element_count(dims), depth), columns};
  if (options.keep_num_dims()) {
    result = dims;
    result.back() = columns;
    QUERNEL_CHECK(n.require_equal(dims.back(), depth, "the last dim of " + to_string(dims)));
  }
  // Rows as the weights have columns, whatever dims the operand has.
  auto rows = [&](ValueId x) { return n.build.reshape(x, {floordiv(element_count(dims), depth), depth}); };
  if (n.has(2)) n.inputs[2] = n.build.reshape(n.in(2), {columns});
  if (n.is_float(0)) {
    ValueId y = multiply_rows(n, rows(n.real(0)), n.real(1), std::nullopt);
    if (n.has(2)) y = n.binary(BinaryOp::k_add, y, n.real(2));
    QUERNEL_TRY(y, activate(n, y, options.fused_activation_function()));
    return n.output(n.build.cast(n.build.reshape(y, result), n.out_dtype(0)));
  }
  if (!n.is_quantized(0) || !n.is_quantized(1)) return n.no_kernel();
  if (!n.in_quantization(1).is_per_tensor() && n.in_quantization(1).axis != 0)
    return n.refuse("expected a weight scale for each output channel");
  QUERNEL_TRY(ProductOperands p, product_operands(n, 0, 1, depth));
  ValueId y = multiply_rows(n, rows(p.x), p.weights, p.accumulator);
  if (p.correction != 0) {
    ValueId sums = n.build.reduce(OpKind::k_reduce_sum, n.build.cast(p.weights, DType::kI32), {1}, false);
    y = n.binary(BinaryOp::k_sub, y, n.binary(BinaryOp::k_mul, sums, static_cast<double>(p.correction)));
  }
  QUERNEL_CHECK(finish_product(n, y, 0, 1, 2, options.fused_activation_function()));
  return n.output(n.build.reshape(n.outputs[0], result));
}

Status import_batch_matmul(NodeImport& n) {
  const auto& options = n.options<tflite::BatchMatMulOptions>();
  for (int i : {0, 1}) QUERNEL_CHECK(n.expect_rank(i, 2, 8));
  size_t rank = static_cast<size_t>(std::max(n.rank(n.in(0)), n.rank(n.in(1))));
  Shape dims_x = n.shape(n.in(0)), dims_y = n.shape(n.in(1));
  QUERNEL_TRY(Shape batch, broadcast_shapes(Shape(dims_x.begin(), dims_x.end() - 2),
                                            Shape(dims_y.begin(), dims_y.end() - 2)));
  MatrixProduct product{std::move(batch), options.adj_x(), options.adj_y()};
  Dim depth = dims_x[dims_x.size() - (product.transposed_x ? 2 : 1)];
  QUERNEL_CHECK(n.require_equal(dims_y[dims_y.size() - (product.transposed_y ? 1 : 2)], depth,
                                "the inner dim of " + to_string(dims_y)));
  auto multiply = [&](ValueId x, ValueId y, std::optional<DType> accumulator) {
    return multiply_matrices(n, with_rank(n, x, rank), with_rank(n, y, rank), product, accumulator);
  };
  if (n.is_float(0)) return n.output(multiply(n.real(0), n.real(1), std::nullopt));
  if (!n.is_quantized(0) || !n.is_quantized(1)) {
    if (n.dtype(n.in(0)) != DType::kI32 || n.dtype(n.in(1)) != DType::kI32) return n.no_kernel();
    return n.output(multiply(n.in(0), n.in(1), std::nullopt));
  }
  QUERNEL_CHECK(n.expect_per_tensor(1));
  QUERNEL_TRY(int64_t terms, n.dim(depth));
  QUERNEL_TRY(ProductOperands p, product_operands(n, 0, 1, terms));
  ValueId y = multiply(p.x, p.weights, p.accumulator);
  if (p.correction != 0) {
    int64_t axis = static_cast<int64_t>(rank) - (product.transposed_y ? 1 : 2);
    ValueId wide = n.build.cast(with_rank(n, p.weights, rank), DType::kI32);
    ValueId sums = n.build.reduce(OpKind::k_reduce_sum, wide, {axis}, true);
    if (product.transposed_y) {  // a row for each column of the result
      std::vector<int64_t> order(rank);
      for (size_t i = 0; i < rank; ++i) order[i] = static_cast<int64_t>(i);
      std::swap(order[rank - 1], order[rank - 2]);
      sums = n.build.permute(sums, order);
    }
    y = n.binary(BinaryOp::k_sub, y, n.binary(BinaryOp::k_mul, sums, static_cast<double>(p.correction)));
  }
  return finish_product(n, y, 0, 1, -1, ActivationFunctionType::NONE);
}

}  // namespace quernel::tflite_import
