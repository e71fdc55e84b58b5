// Losses against integer targets: the negative log likelihood, alone or after a log softmax.
#include "frontends/onnx/activation.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/run_time_checks.h"

namespace quernel::onnx_import {
namespace {

// -w[t] * x[n, t, …], summed, averaged by the weights, or as it is. `scores` is wide; the result has `dtype`.
Expected<ValueId> negative_log_likelihood(NodeImport& n, ValueId scores, ValueId target, ValueId weights,
                                          DType dtype) {
  std::string reduction = n.attr_string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return n.invalid("attribute 'reduction': expected none, sum or mean, found '" + reduction + "'");
  Shape shape = n.shape(scores), expected = shape;
  if (shape.size() < 2) return n.invalid("expected scores [N,C,...], found " + to_string(shape));
  expected.erase(expected.begin() + 1);
  if (n.shape(target) != expected)
    return n.invalid("expected targets of " + to_string(expected) + ", found " + to_string(n.shape(target)));
  if (weights != kNoValue && n.shape(weights) != Shape{shape[1]})
    return n.invalid("expected weights of [" + to_string(shape[1]) + "], found " +
                     to_string(n.shape(weights)));
  const onnx::AttributeProto* ignored = n.attribute("ignore_index");
  int64_t ignore_index = n.attr_int("ignore_index", 0);
  ValueId keep = kNoValue, index = target;
  if (ignored) {
    // The ignored index need not be a class, so it is replaced before the gather.
    ValueId sentinel = n.build.cast(n.build.constant(i64_tensor({}, {ignore_index})), n.dtype(target));
    keep = n.binary(BinaryOp::k_ne, target, sentinel);
    index = n.build.where(keep, target, n.scalar(n.dtype(target), 0));
  }
  QUERNEL_CHECK(check_indices(n, index, shape[1], "target"));
  Shape with_class = expected;
  with_class.insert(with_class.begin() + 1, Dim(1));
  Attributes classes;
  classes.ints = {1};
  ValueId picked = n.build.add(OpKind::k_gather_elements, {scores, n.build.reshape(index, with_class)},
                               std::move(classes));
  ValueId loss = n.unary(UnaryOp::k_neg, n.build.reshape(picked, expected));
  ValueId weight = kNoValue, zero = n.scalar(n.dtype(scores), 0);
  if (weights != kNoValue) {
    weight = n.build.take(n.widen(weights), index, 0);
    if (keep != kNoValue) weight = n.build.where(keep, weight, zero);
  } else if (keep != kNoValue) {
    weight = n.build.cast(keep, n.dtype(scores));
  }
  if (keep != kNoValue) loss = n.build.where(keep, loss, zero);
  if (weights != kNoValue) loss = n.binary(BinaryOp::k_mul, loss, weight);
  if (reduction != "none") {
    std::vector<int64_t> axes;
    for (int i = 0; i < static_cast<int>(expected.size()); ++i) axes.push_back(i);
    if (reduction == "mean" && weight == kNoValue) {
      loss = n.mean(loss, axes, false);
    } else {
      loss = n.build.reduce(OpKind::k_reduce_sum, loss, axes, false);
      if (reduction == "mean")
        loss = n.binary(BinaryOp::k_div, loss, n.build.reduce(OpKind::k_reduce_sum, weight, axes, false));
    }
  }
  return n.build.cast(loss, dtype);
}

}  // namespace

Status import_negative_log_likelihood_loss(NodeImport& n) {
  QUERNEL_TRY(ValueId loss, negative_log_likelihood(n, n.widen(n.in(0)), n.in(1), n.in(2), n.dtype(n.in(0))));
  return n.output(loss);
}

Status import_softmax_cross_entropy_loss(NodeImport& n) {
  DType dtype = n.dtype(n.in(0));
  if (n.rank(n.in(0)) < 2)
    return n.invalid("expected scores [N,C,...], found " + to_string(n.shape(n.in(0))));
  ValueId log_prob = log_softmax(n, n.widen(n.in(0)), {1});
  QUERNEL_TRY(ValueId loss, negative_log_likelihood(n, log_prob, n.in(1), n.in(2), dtype));
  return n.set_outputs({loss, n.build.cast(log_prob, dtype)});
}

}  // namespace quernel::onnx_import
