// NonMaxSuppression: again and again, for every batch and class at once, the box of the highest score is
// taken, and what overlaps it is dropped. A loop ends when no batch and class has a box left.
#include <cmath>
#include <limits>

#include "frontends/onnx/operators.h"
#include "graph/outline.h"

namespace quernel::onnx_import {
namespace {

// The corners and areas of boxes, one value per box.
struct Boxes {
  ValueId low[2], high[2], area;
};

// Of boxes [batch, count, 4]: two corners in any order, or centre and size; which coordinate comes first does
// not matter.
Boxes read_boxes(NodeImport& n, ValueId boxes, bool centered) {
  Shape shape = n.shape(boxes);
  auto coordinate = [&](int64_t i) {
    return n.build.reshape(n.build.slice(boxes, {0, 0, i}, {shape[0], shape[1], i + 1}),
                           {shape[0], shape[1]});
  };
  Boxes result;
  for (int64_t i = 0; i < 2; ++i) {
    ValueId a = coordinate(i), b = coordinate(i + 2);
    if (centered) {
      ValueId half = n.binary(BinaryOp::k_mul, b, 0.5), center = a;
      a = n.binary(BinaryOp::k_sub, center, half);
      b = n.binary(BinaryOp::k_add, center, half);
    }
    result.low[i] = n.binary(BinaryOp::k_min, a, b);
    result.high[i] = n.binary(BinaryOp::k_max, a, b);
  }
  result.area = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_sub, result.high[0], result.low[0]),
                         n.binary(BinaryOp::k_sub, result.high[1], result.low[1]));
  return result;
}

// One box of each batch and class, [batch, class], beside all of the batch: [batch, class, count].
struct Pairing {
  Shape shape;     // batch, class, count
  ValueId chosen;  // positions [batch, class]

  ValueId one(NodeImport& n, ValueId of_boxes) const {
    Attributes attributes;
    attributes.ints = {1};
    ValueId x = n.build.add(OpKind::k_gather_elements, {of_boxes, chosen}, std::move(attributes));
    return n.build.reshape(x, {shape[0], shape[1], 1});
  }
  ValueId all(NodeImport& n, ValueId of_boxes) const {
    return n.build.reshape(of_boxes, {shape[0], 1, shape[2]});
  }
};

// Where intersection over union exceeds the threshold. Boxes without area overlap nothing.
ValueId overlaps(NodeImport& n, const Boxes& boxes, const Pairing& pairs, ValueId threshold) {
  ValueId common = kNoValue;
  for (int i = 0; i < 2; ++i) {
    ValueId high = n.binary(BinaryOp::k_min, pairs.one(n, boxes.high[i]), pairs.all(n, boxes.high[i]));
    ValueId low = n.binary(BinaryOp::k_max, pairs.one(n, boxes.low[i]), pairs.all(n, boxes.low[i]));
    ValueId extent = n.binary(BinaryOp::k_max, n.binary(BinaryOp::k_sub, high, low), 0.0);
    common = i == 0 ? extent : n.binary(BinaryOp::k_mul, common, extent);
  }
  ValueId both = n.binary(BinaryOp::k_add, pairs.one(n, boxes.area), pairs.all(n, boxes.area));
  ValueId whole = n.binary(BinaryOp::k_sub, both, common);
  ValueId over = n.binary(BinaryOp::k_gt, n.binary(BinaryOp::k_div, common, whole), threshold);
  return n.binary(BinaryOp::k_and, over, n.binary(BinaryOp::k_gt, common, 0.0));
}

// Operand i as a scalar, zero when it is not there.
ValueId scalar_operand(NodeImport& n, int i, DType dtype) {
  return n.has(i) ? n.build.cast(n.build.reshape(n.in(i), {}), dtype) : n.scalar(dtype, 0);
}

// How many boxes are taken of a batch and class: at most as many as there are.
Expected<Dim> most_boxes(NodeImport& n, const Dim& count) {
  if (!n.has(2)) return Dim(0);
  if (const Tensor* known = n.constant(n.in(2)); known && known->count() == 1)
    return min(Dim(std::max<int64_t>(element_as_i64(*known, 0), 0)), count);
  ValueId most = n.binary(BinaryOp::k_max, scalar_operand(n, 2, DType::kI64), 0.0);
  most = n.binary(BinaryOp::k_min, most, n.number(DType::kI64, count));
  Symbol symbol{"max_boxes", 0, count.bounds().hi, 1, true, {count.upper_bound()}};
  return n.build.graph().add_symbol(std::move(symbol), most);
}

}  // namespace

// boxes [batch, count, 4], scores [batch, class, count]; the result, [any, 3] of i64, has batch, class and
// box. A score that is NaN is never taken; without a threshold one of -inf counts as the lowest finite one.
Status import_non_max_suppression(NodeImport& n) {
  bool centered = n.attr_int("center_point_box", 0) != 0;
  Shape boxes_shape = n.shape(n.in(0)), shape = n.shape(n.in(1));
  if (boxes_shape.size() != 3 || shape.size() != 3 || !(boxes_shape[2] == Dim(4)))
    return n.invalid("expected boxes [batch,count,4] and scores [batch,class,count], found " +
                     to_string(boxes_shape) + " and " + to_string(shape));
  if (!(boxes_shape[0] == shape[0]) || !(boxes_shape[1] == shape[2]))
    return n.invalid("expected boxes and scores of one batch and count, found " + to_string(boxes_shape) +
                     " and " + to_string(shape));
  for (int i = 2; i < 5; ++i)
    if (n.has(i) && !(element_count(n.shape(n.in(i))) == Dim(1)))
      return n.invalid("expected operand " + std::to_string(i) + " of one element, found " +
                       to_string(n.shape(n.in(i))));
  QUERNEL_TRY(Dim most, most_boxes(n, shape[2]));
  if (most == Dim(0) || element_count(shape) == Dim(0)) return n.output(n.full(DType::kI64, {0, 3}, 0));

  ValueId scores = n.in(1), threshold = scalar_operand(n, 3, n.dtype(n.in(0)));
  DType dtype = n.dtype(scores);
  if (!n.has(4)) {
    double lowest =
        dtype == DType::kF64 ? std::numeric_limits<double>::lowest() : std::numeric_limits<float>::lowest();
    scores = n.binary(BinaryOp::k_max, scores, lowest);
  }
  Boxes boxes = read_boxes(n, n.in(0), centered);
  ValueId taken = n.scalar(dtype, -INFINITY);  // the score of boxes that are
  ValueId wanted = n.has(4) ? n.binary(BinaryOp::k_gt, scores, scalar_operand(n, 4, dtype))
                            : n.binary(BinaryOp::k_eq, scores, scores);
  auto any_left = [&](ValueId left) {
    ValueId is_left = n.binary(BinaryOp::k_gt, left, taken);
    return n.build.reduce(OpKind::k_reduce_or, is_left, {0, 1, 2}, false);
  };
  ValueId initial = n.build.where(wanted, scores, taken);
  LoopSpec loop{"taken", {initial}, most, any_left(initial)};
  std::optional<std::vector<ValueId>> results = build_loop(
      n.build, loop, [&](const Dim&, const std::vector<ValueId>& carried) -> std::optional<LoopStep> {
        ValueId left = carried[0];
        Attributes best;
        best.ints = {2};
        best.dtype = DType::kI64;
        Pairing pairs{shape, n.build.add(OpKind::k_reduce_argmax, {left}, std::move(best))};
        ValueId found =
            n.binary(BinaryOp::k_gt, n.build.reduce(OpKind::k_reduce_max, left, {2}, false), taken);
        ValueId itself = n.binary(BinaryOp::k_eq, n.build.reshape(pairs.chosen, {shape[0], shape[1], 1}),
                                  n.positions(DType::kI64, shape[2]));
        ValueId gone = n.binary(BinaryOp::k_or, itself, overlaps(n, boxes, pairs, threshold));
        ValueId next = n.build.where(gone, taken, left);
        return LoopStep{{next}, {pairs.chosen, found}, any_left(next)};
      });
  // What was taken, by batch and class and then in the order of the scores.
  ValueId chosen = n.build.permute((*results)[1], {1, 2, 0}),
          found = n.build.permute((*results)[2], {1, 2, 0});
  Dim rounds = n.shape(chosen)[2], all = shape[0] * shape[1] * rounds;
  ValueId places = n.positions_where(n.build.reshape(found, {all}));
  ValueId line = n.binary(BinaryOp::k_idiv, places, n.number(DType::kI64, rounds));
  ValueId classes = n.number(DType::kI64, shape[1]);
  std::vector<ValueId> columns{n.binary(BinaryOp::k_idiv, line, classes),
                               n.binary(BinaryOp::k_fmod, line, classes),
                               n.build.take(n.build.reshape(chosen, {all}), places, 0)};
  Dim count = n.shape(places)[0];
  for (ValueId& column : columns) column = n.build.reshape(column, {count, 1});
  return n.output(n.build.cat(std::move(columns), 1));
}

}  // namespace quernel::onnx_import
