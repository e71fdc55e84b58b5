#include "frontends/onnx/attend.h"

#include <cmath>
#include <limits>

#include "frontends/onnx/activation.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Softmax over the last axis in which a row without a finite score has no weights. `sink`: scores [1,H,1,1]
// that only share the weight.
ValueId masked_softmax(NodeImport& n, ValueId x, ValueId sink) {
  int64_t last = n.rank(x) - 1;
  ValueId none = n.scalar(n.dtype(x), -kInfinity), zero = n.scalar(n.dtype(x), 0);
  ValueId top = n.build.reduce(OpKind::k_reduce_max, x, {last}, true);
  if (sink != kNoValue) top = n.binary(BinaryOp::k_max, top, sink);
  top = n.build.where(n.binary(BinaryOp::k_eq, top, none), zero, top);
  ValueId e = n.unary(UnaryOp::k_exp, n.binary(BinaryOp::k_sub, x, top));
  ValueId sum = n.build.reduce(OpKind::k_reduce_sum, e, {last}, true);
  if (sink != kNoValue)
    sum = n.binary(BinaryOp::k_add, sum, n.unary(UnaryOp::k_exp, n.binary(BinaryOp::k_sub, sink, top)));
  ValueId divisor = n.build.where(n.binary(BinaryOp::k_eq, sum, zero), n.scalar(n.dtype(x), 1), sum);
  return n.binary(BinaryOp::k_div, e, divisor);
}

}  // namespace

Expected<AttentionValues> attend(NodeImport& n, const AttentionOperands& x) {
  Shape q = n.shape(x.query), k = n.shape(x.key), v = n.shape(x.value);
  bool fits = q.size() == 4 && k.size() == 4 && v.size() == 4 && k[0] == q[0] && v[0] == q[0] &&
              k[1] == v[1] && k[2] == v[2] && q[3] == k[3];
  if (fits) {
    QUERNEL_TRY(int64_t heads, n.dim(q[1]));
    QUERNEL_TRY(int64_t key_heads, n.dim(k[1]));
    fits = key_heads >= 1 && heads % key_heads == 0;
  }
  if (q.size() == 4 && k.size() == 4 && v.size() == 4)
    for (auto [a, b] : {std::pair(k[0], q[0]), {v[0], q[0]}, {k[1], v[1]}, {k[2], v[2]}, {q[3], k[3]}})
      n.build.note_unequal(a, b, true);
  if (!fits)
    return n.invalid("expected queries, keys and values that fit each other, found " +
                     to_string(n.shape(x.query)) + ", " + to_string(n.shape(x.key)) + " and " +
                     to_string(n.shape(x.value)));
  int64_t groups = k[1].value(), sharing = q[1].value() / groups;
  DType dtype = n.dtype(x.query);
  AttentionValues r;
  {
    ValueId query = x.scale == 1 ? x.query : n.binary(BinaryOp::k_mul, x.query, x.scale);
    ContractionBuilder c;
    IndexExpr b = c.axis("b", q[0]), g = c.axis("g", groups), h = c.axis("h", sharing), i = c.axis("i", q[2]),
              j = c.axis("j", k[2]), d = c.reduction("d", q[3]);
    r.raw = c.emit(n, query, {b, g * sharing + h, i, d}, x.key, {b, g, j, d}, {b, g * sharing + h, i, j});
  }
  r.capped = r.raw;
  if (x.softcap != 0)
    r.capped = n.binary(BinaryOp::k_mul,
                        n.unary(UnaryOp::k_tanh, n.binary(BinaryOp::k_div, r.raw, x.softcap)), x.softcap);
  r.biased = r.capped;
  ValueId none = n.scalar(dtype, -kInfinity);
  if (x.bias != kNoValue) {
    // A hidden key stays hidden whatever its score is.
    ValueId hidden = n.binary(BinaryOp::k_eq, x.bias, none);
    r.biased = n.build.where(hidden, none, n.binary(BinaryOp::k_add, r.biased, x.bias));
  }
  if (x.allowed != kNoValue) r.biased = n.build.where(x.allowed, r.biased, none);
  if (x.score_mod) {
    if (x.softmax_rounding) r.biased = n.build.cast(r.biased, *x.softmax_rounding);
    r.biased = x.score_mod(r.biased);
    if (r.biased == kNoValue) return AttentionValues();
  }
  bool masked = x.bias != kNoValue || x.allowed != kNoValue || x.sink != kNoValue;
  ValueId scores = r.biased;
  if (x.softmax_rounding) scores = n.widen(n.build.cast(scores, *x.softmax_rounding));
  ValueId sink = kNoValue;
  if (x.sink != kNoValue) sink = n.reshape(n.build.cast(x.sink, n.dtype(scores)), {1, q[1].value(), 1, 1});
  r.weights = masked ? masked_softmax(n, scores, sink) : softmax(n, scores, {3});
  if (x.softmax_rounding) r.weights = n.build.cast(r.weights, *x.softmax_rounding);
  if (x.weight_mod) r.weights = x.weight_mod(r.weights);
  if (x.weight_mod && r.weights == kNoValue) return AttentionValues();
  r.weights = n.build.cast(r.weights, dtype);
  ContractionBuilder c;
  IndexExpr b = c.axis("b", q[0]), g = c.axis("g", groups), h = c.axis("h", sharing), i = c.axis("i", q[2]),
            e = c.axis("e", v[3]), j = c.reduction("j", k[2]);
  r.output =
      c.emit(n, r.weights, {b, g * sharing + h, i, j}, x.value, {b, g, j, e}, {b, g * sharing + h, i, e});
  return r;
}

Expected<ValueId> split_heads(NodeImport& n, ValueId x, int64_t heads) {
  Shape shape = n.shape(x);
  if (shape.size() != 3) return n.invalid("expected [batch,length,features], found " + to_string(shape));
  QUERNEL_TRY(int64_t features, n.dim(shape[2]));
  if (heads < 1 || features % heads != 0)
    return n.invalid("expected a number of heads that divides " + std::to_string(features) + ", found " +
                     std::to_string(heads));
  ValueId split = n.build.reshape(x, {shape[0], shape[1], heads, features / heads});
  ValueId by_head = n.build.permute(split, {0, 2, 1, 3});
  return by_head;
}

ValueId merge_heads(NodeImport& n, ValueId x) {
  Shape shape = n.shape(x);
  if (shape.size() != 4) return n.build.permute(x, {0, 2, 1, 3});
  return n.build.reshape(n.build.permute(x, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
}

ValueId window_mask(NodeImport& n, const Dim& queries, const Dim& keys, ValueId offset, int64_t left,
                    int64_t right) {
  ValueId here = n.binary(BinaryOp::k_add, n.positions(DType::kI64, queries, 1), offset);
  ValueId there = n.positions(DType::kI64, keys), allowed = kNoValue;
  if (right >= 0)
    allowed = n.binary(BinaryOp::k_le, there, n.binary(BinaryOp::k_add, here, static_cast<double>(right)));
  if (left >= 0)
    allowed = both_allowed(
        n, allowed,
        n.binary(BinaryOp::k_ge, there, n.binary(BinaryOp::k_sub, here, static_cast<double>(left))));
  return allowed;
}

ValueId length_mask(NodeImport& n, ValueId lengths, const Dim& keys) {
  ValueId column = n.build.reshape(lengths, {element_count(n.shape(lengths)), 1, 1, 1});
  return n.binary(BinaryOp::k_lt, n.positions(n.dtype(lengths), keys), column);
}

ValueId both_allowed(NodeImport& n, ValueId a, ValueId b) {
  if (a == kNoValue || b == kNoValue) return a == kNoValue ? b : a;
  return n.binary(BinaryOp::k_and, a, b);
}

ValueId rotate(NodeImport& n, ValueId x, ValueId cosines, ValueId sines, int64_t rotated, bool interleaved) {
  Shape shape = n.shape(x), starts(4, Dim(0));
  auto cut = [&](const Dim& from, const Dim& to, int64_t step) {
    Shape first = starts, last = shape;
    first[3] = from;
    last[3] = to;
    return n.build.slice(x, first, last, {1, 1, 1, step});
  };
  ValueId a = interleaved ? cut(0, rotated, 2) : cut(0, rotated / 2, 1);
  ValueId b = interleaved ? cut(1, rotated, 2) : cut(rotated / 2, rotated, 1);
  auto per_head = [&](ValueId table) {
    Shape s = n.shape(table);
    s.insert(s.end() - 1, Dim(1));
    return n.build.reshape(table, s);
  };
  ValueId cosine = per_head(cosines), sine = per_head(sines);
  auto times = [&](ValueId u, ValueId w) { return n.binary(BinaryOp::k_mul, u, w); };
  ValueId real = n.binary(BinaryOp::k_sub, times(a, cosine), times(b, sine)),
          imaginary = n.binary(BinaryOp::k_add, times(a, sine), times(b, cosine));
  ValueId result;
  if (interleaved) {
    Shape pairs{shape[0], shape[1], shape[2], rotated / 2, 1}, merged = shape;
    merged[3] = rotated;
    result = n.build.reshape(
        n.build.cat({n.build.reshape(real, pairs), n.build.reshape(imaginary, pairs)}, 4), merged);
  } else {
    result = n.build.cat({real, imaginary}, 3);
  }
  if (shape[3] == Dim(rotated)) return result;
  return n.build.cat({result, cut(rotated, shape[3], 1)}, 3);
}

}  // namespace quernel::onnx_import
