// NON_MAX_SUPPRESSION_V4 and _V5: again and again the box of the highest score is taken, and what overlaps it is dropped
// or gets a lower score. A loop of as many iterations as there may be results.
#include <array>
#include <cmath>

#include "frontends/tflite/operators.h"
#include "graph/outline.h"

namespace quernel::tflite_import {
namespace {

// Corners in any order, one value per box.
struct Boxes {
  std::array<ValueId, 2> low, high;
  ValueId area;
};

Boxes read_boxes(NodeImport& n, const Dim& count) {
  auto coordinate = [&](int64_t i) {
    return n.build.reshape(n.build.slice(n.in(0), {0, i}, {count, i + 1}), {count});
  };
  Boxes boxes;
  for (size_t i = 0; i < 2; ++i) {
    ValueId a = coordinate(static_cast<int64_t>(i)), b = coordinate(static_cast<int64_t>(i) + 2);
    boxes.low[i] = n.binary(BinaryOp::k_min, a, b);
    boxes.high[i] = n.binary(BinaryOp::k_max, a, b);
  }
  boxes.area = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_sub, boxes.high[0], boxes.low[0]),
                        n.binary(BinaryOp::k_sub, boxes.high[1], boxes.low[1]));
  return boxes;
}

// Intersection over union of one box and all; 0 for boxes without area.
ValueId overlap(NodeImport& n, const Boxes& boxes, ValueId chosen) {
  auto one = [&](ValueId of_boxes) { return n.build.take(of_boxes, chosen, 0); };
  ValueId common = kNoValue;
  for (size_t i = 0; i < 2; ++i) {
    ValueId high = n.binary(BinaryOp::k_min, one(boxes.high[i]), boxes.high[i]);
    ValueId low = n.binary(BinaryOp::k_max, one(boxes.low[i]), boxes.low[i]);
    ValueId extent = n.binary(BinaryOp::k_max, n.binary(BinaryOp::k_sub, high, low), 0.0);
    common = i == 0 ? extent : n.binary(BinaryOp::k_mul, common, extent);
  }
  ValueId whole = n.binary(BinaryOp::k_sub, n.binary(BinaryOp::k_add, one(boxes.area), boxes.area), common);
  ValueId quotient = n.binary(BinaryOp::k_div, common, whole);
  return n.build.where(n.binary(BinaryOp::k_gt, common, 0.0), quotient, n.scalar(DType::kF32, 0));
}

}  // namespace

// Operands: boxes [count, 4], scores [count], the number of results, thresholds of overlap and of score, and sigma, by
// which overlapping boxes lose score; 0: they lose none. Results: places, scores (V5), and how many there are.
Status import_non_max_suppression(NodeImport& n) {
  bool gives_scores = n.kind == tflite::BuiltinOperator::NON_MAX_SUPPRESSION_V5;
  QUERNEL_CHECK(n.expect_rank(0, 2, 2));
  QUERNEL_CHECK(n.expect_rank(1, 1, 1));
  QUERNEL_TRY(int64_t most, n.int_in(2, "the number of results"));
  QUERNEL_TRY(double least_overlap, n.float_in(3, "the threshold of overlap"));
  QUERNEL_TRY(double least_score, n.float_in(4, "the threshold of scores"));
  double sigma = 0;
  if (n.has(5)) {
    QUERNEL_TRY(sigma, n.float_in(5, "sigma"));
  }
  constexpr int64_t kMostResults = 1 << 20;
  if (most < 1 || most > kMostResults)
    return n.invalid("expected a number of results of at least 1, found " + std::to_string(most));
  Dim count = n.shape(n.in(1))[0];
  QUERNEL_CHECK(n.require_at_least(count, 1, "the number of boxes"));
  Boxes boxes = read_boxes(n, count);
  ValueId gone = n.scalar(DType::kF32, -INFINITY);
  ValueId first = n.build.where(n.binary(BinaryOp::k_gt, n.in(1), least_score), n.in(1), gone);
  LoopSpec loop{n.output_names[0], {first}, Dim(most), kNoValue};
  auto step = [&](const Dim&, const std::vector<ValueId>& carried) -> std::optional<LoopStep> {
    ValueId left = carried[0];
    Attributes best;
    best.ints = {0};
    best.dtype = DType::kI32;
    ValueId chosen = n.build.add(OpKind::k_reduce_argmax, {left}, std::move(best));
    ValueId score = n.build.reduce(OpKind::k_reduce_max, left, {0}, false);
    ValueId share = overlap(n, boxes, chosen);
    ValueId lowered = left;
    if (sigma > 0) {
      ValueId exponent = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_mul, share, share), -0.5 / sigma);
      lowered = n.binary(BinaryOp::k_mul, left, n.unary(UnaryOp::k_exp, exponent));
      lowered = n.build.where(n.binary(BinaryOp::k_gt, lowered, least_score), lowered, gone);
    }
    ValueId itself = n.binary(BinaryOp::k_eq, n.positions(DType::kI32, count), chosen);
    ValueId dropped = n.binary(BinaryOp::k_or, itself, n.binary(BinaryOp::k_gt, share, least_overlap));
    return LoopStep{{n.build.where(dropped, gone, lowered)}, {chosen, score}, kNoValue};
  };
  std::optional<std::vector<ValueId>> results = build_loop(n.build, loop, step);
  if (!results) return internal_error("a loop without results", n.build.location());
  ValueId found = n.binary(BinaryOp::k_gt, (*results)[2], gone);
  ValueId places = n.build.where(found, (*results)[1], n.scalar(DType::kI32, 0));
  ValueId scores = n.build.where(found, (*results)[2], n.scalar(DType::kF32, 0));
  ValueId number = n.build.reduce(OpKind::k_reduce_sum, n.build.cast(found, DType::kI32), {0}, false);
  if (gives_scores) return n.set_outputs({places, scores, number});
  return n.set_outputs({places, number});
}

}  // namespace quernel::tflite_import
