// MatMul and Gemm: contractions.
#include <algorithm>
#include <cmath>

#include "frontends/onnx/matmul.h"
#include "frontends/onnx/operators.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {

// numpy.matmul: 1-D operands get a dim of 1 that leaves the result again; leading dims broadcast.
Expected<ValueId> matmul(NodeImport& n, ValueId left, ValueId right, std::optional<DType> accumulator) {
  Shape a = n.shape(left), b = n.shape(right);
  if (a.empty() || b.empty()) return n.invalid("expected operands of rank 1 or more");
  bool a_vector = a.size() == 1, b_vector = b.size() == 1;
  Dim k = a.back(), k_b = b_vector ? b[0] : b[b.size() - 2];
  if (!(k == k_b)) {
    n.build.note_unequal(k, k_b, true);
    return n.invalid("expected equal inner dims, found " + to_string(n.shape(left)) + " and " +
                     to_string(n.shape(right)));
  }
  Shape batch_a(a.begin(), a.end() - (a_vector ? 1 : 2)), batch_b(b.begin(), b.end() - (b_vector ? 1 : 2));
  size_t batch_rank = std::max(batch_a.size(), batch_b.size());

  ContractionBuilder c;
  std::vector<IndexExpr> index_a, index_b, index_out;
  for (size_t i = 0; i < batch_rank; ++i) {
    size_t skip_a = batch_rank - batch_a.size(), skip_b = batch_rank - batch_b.size();
    Dim da = i < skip_a ? Dim(1) : batch_a[i - skip_a], db = i < skip_b ? Dim(1) : batch_b[i - skip_b];
    bool one_a = da == Dim(1), one_b = db == Dim(1);
    if (!(da == db) && !one_a && !one_b) {
      n.note_broadcast(batch_a, batch_b);
      return n.invalid("expected batch dims that broadcast, found " + to_string(n.shape(left)) + " and " +
                       to_string(n.shape(right)));
    }
    IndexExpr axis = c.axis("b" + std::to_string(i), one_a ? db : da);
    if (i >= skip_a) index_a.push_back(one_a ? IndexExpr(0) : axis);
    if (i >= skip_b) index_b.push_back(one_b ? IndexExpr(0) : axis);
    index_out.push_back(axis);
  }
  if (!a_vector) {
    IndexExpr m = c.axis("m", a[a.size() - 2]);
    index_a.push_back(m);
    index_out.push_back(m);
  }
  IndexExpr column = b_vector ? IndexExpr(0) : c.axis("n", b.back());
  if (!b_vector) index_out.push_back(column);
  IndexExpr inner = c.reduction("k", k);
  index_a.push_back(inner);
  index_b.push_back(inner);
  if (!b_vector) index_b.push_back(column);
  ValueId y =
      c.emit(n, left, std::move(index_a), right, std::move(index_b), std::move(index_out), accumulator);
  return y;
}

Status import_matmul(NodeImport& n) {
  QUERNEL_TRY(ValueId y, matmul(n, n.in(0), n.in(1)));
  return n.output(y);
}

ValueId stored_weights(NodeImport& n, ValueId weights) {
  const Node* widening = n.build.graph().def(weights);
  bool is_cast = widening && widening->op == OpKind::k_cast && n.dtype(weights) == DType::kF32;
  const Node* source = is_cast ? n.build.graph().def(widening->inputs[0]) : nullptr;
  if (!source || source->op != OpKind::k_constant) return weights;
  DType dtype = n.dtype(source->output);
  return dtype == DType::kF16 || dtype == DType::kBF16 ? source->output : weights;
}

namespace {
bool is_whole(double factor) { return factor == std::trunc(factor) && std::abs(factor) < 0x1p31; }
}  // namespace

// alpha * op(A) op(B) + beta * C, of which narrow operands are widened; integers by factors that are none are
// computed in f64 from their sums on.
Expected<ValueId> gemm(NodeImport& n) {
  double alpha = n.attr_float("alpha", 1), beta = n.attr_float("beta", 1);
  bool trans_a = n.attr_int("transA", 0) != 0, trans_b = n.attr_int("transB", 0) != 0;
  Shape a = n.shape(n.in(0)), b = n.shape(n.in(1));
  if (a.size() != 2 || b.size() != 2)
    return n.invalid("expected matrices, found ranks " + std::to_string(a.size()) + " and " +
                     std::to_string(b.size()));
  if (trans_a) std::swap(a[0], a[1]);
  if (trans_b) std::swap(b[0], b[1]);
  if (!(a[1] == b[0])) {
    n.build.note_unequal(a[1], b[0], true);
    return n.invalid("expected equal inner dims, found " + to_string(n.shape(n.in(0))) + " and " +
                     to_string(n.shape(n.in(1))));
  }
  ContractionBuilder c;
  IndexExpr row = c.axis("m", a[0]), column = c.axis("n", b[1]), k = c.reduction("k", a[1]);
  std::vector<IndexExpr> index_a{row, k}, index_b{k, column};
  if (trans_a) std::swap(index_a[0], index_a[1]);
  if (trans_b) std::swap(index_b[0], index_b[1]);
  ValueId y = c.emit(n, n.in(0), index_a, stored_weights(n, n.in(1)), index_b, {row, column});
  DType dtype = n.dtype(y);
  if (!is_float(dtype) && !(is_whole(alpha) && is_whole(beta))) y = n.build.cast(y, DType::kF64);
  if (alpha != 1) y = n.binary(BinaryOp::k_mul, y, alpha);
  if (n.has(2) && beta != 0) {
    ValueId addend = n.build.cast(n.in(2), n.dtype(y));
    if (beta != 1) addend = n.binary(BinaryOp::k_mul, addend, beta);
    y = n.binary(BinaryOp::k_add, y, n.build.broadcast_to(addend, Shape{a[0], b[1]}));
  }
  y = n.build.cast(y, dtype);
  return y;
}

Status import_gemm(NodeImport& n) {
  n.compute_wide();
  QUERNEL_TRY(ValueId y, gemm(n));
  return n.output(y);
}

}  // namespace quernel::onnx_import
