// TFLite_Detection_PostProcess, a custom operator: boxes from offsets to anchors, then non-maximum suppression, over the
// best class of each box (fast) or for each class (regular). A loop of as many iterations as a line of scores may give
// boxes; it ends when no line has a box left.
#include <algorithm>
#include <array>
#include <cmath>

#include "frontends/tflite/flexbuffer.h"
#include "frontends/tflite/operators.h"
#include "graph/outline.h"

namespace quernel::tflite_import {
namespace {

constexpr int64_t kMostDetections = 1 << 20;

struct Detection {
  int64_t most = 0, classes = 0;
  int64_t most_classes = 0;      // of a box, fast; regular: the results have room for them
  int64_t most_per_class = 100;  // regular
  bool regular = false;
  double least_score = 0, least_overlap = 0;
  std::array<double, 4> scales{};  // y, x, h, w
};

// Entries of the map by name; what is left is not known.
class Entries {
 public:
  Entries(NodeImport& n, AttributeValues values) : n_(n), values_(std::move(values)) {}

  // The entry; `fallback` where there is none, which is an error without one.
  Expected<double> number(const std::string& name, std::optional<double> fallback = {}) {
    auto entry = values_.extract(name);
    if (entry.empty()) {
      if (fallback) return *fallback;
      return n_.invalid("option '" + name + "' is missing");
    }
    if (const auto* integer = std::get_if<int64_t>(&entry.mapped())) return static_cast<double>(*integer);
    if (const auto* real = std::get_if<float>(&entry.mapped())) return static_cast<double>(*real);
    return n_.bad_option(name, "a number", "text or a list");
  }
  Expected<int64_t> count(const std::string& name, int64_t most, std::optional<double> fallback = {}) {
    QUERNEL_TRY(double value, number(name, fallback));
    if (!(value >= 1) || value > static_cast<double>(most) || value != std::floor(value))
      return n_.bad_option(name, "a whole number from 1 to " + std::to_string(most), std::to_string(value));
    return static_cast<int64_t>(value);
  }
  Status expect_none_left() const {
    if (values_.empty()) return {};
    return n_.refuse("option '" + values_.begin()->first + "' is not known",
                     "the option may change the result, so it is not ignored");
  }

 private:
  NodeImport& n_;
  AttributeValues values_;
};

Expected<Detection> read_options(NodeImport& n) {
  std::vector<uint8_t> bytes = n.custom_options();
  std::optional<AttributeValues> map = read_flexbuffer_map(bytes);
  if (!map) return n.invalid("expected options in a FlexBuffers map, found other bytes");
  Entries entries(n, *std::move(map));
  Detection d;
  QUERNEL_TRY(d.most, entries.count("max_detections", kMostDetections));
  QUERNEL_TRY(d.most_classes, entries.count("max_classes_per_detection", kMostDetections));
  QUERNEL_TRY(d.classes, entries.count("num_classes", kMostDetections));
  QUERNEL_TRY(d.most_per_class, entries.count("detections_per_class", kMostDetections, 100));
  QUERNEL_TRY(double regular, entries.number("use_regular_nms", 0));
  QUERNEL_TRY(d.least_score, entries.number("nms_score_threshold"));
  QUERNEL_TRY(d.least_overlap, entries.number("nms_iou_threshold"));
  d.regular = regular != 0;
  const std::array<const char*, 4> names{"y_scale", "x_scale", "h_scale", "w_scale"};
  for (size_t i = 0; i < 4; ++i) {
    QUERNEL_TRY(d.scales[i], entries.number(names[i]));
    if (!(d.scales[i] > 0)) return n.bad_option(names[i], "a number above 0", std::to_string(d.scales[i]));
  }
  QUERNEL_CHECK(entries.expect_none_left());
  if (!(d.least_overlap > 0 && d.least_overlap <= 1))
    return n.bad_option("nms_iou_threshold", "a number above 0, at most 1", std::to_string(d.least_overlap));
  if (d.most * d.most_classes > kMostDetections)
    return n.bad_option("max_detections", "at most " + std::to_string(kMostDetections) + " results",
                        std::to_string(d.most) + " times " + std::to_string(d.most_classes));
  return d;
}

// Corners of all boxes, [count] each, y before x.
struct Boxes {
  std::array<ValueId, 2> low, high;
  ValueId area;
};

// Boxes: centre y and x, height, width, relative to the anchors, which are the same.
Boxes decode_boxes(NodeImport& n, const Detection& d, const Dim& count) {
  ValueId offsets = n.build.reshape(n.real(0), {count, n.shape(n.in(0))[2]}), anchors = n.real(2);
  auto column = [&](ValueId of, int64_t i) {
    return n.build.reshape(n.build.slice(of, {0, i}, {count, i + 1}), {count});
  };
  Boxes boxes;
  for (size_t i = 0; i < 2; ++i) {
    auto at = static_cast<int64_t>(i);
    ValueId extent = column(anchors, at + 2);
    ValueId shift = n.binary(BinaryOp::k_div, column(offsets, at), d.scales[i]);
    ValueId center = n.binary(BinaryOp::k_add, n.binary(BinaryOp::k_mul, shift, extent), column(anchors, at));
    ValueId growth =
        n.unary(UnaryOp::k_exp, n.binary(BinaryOp::k_div, column(offsets, at + 2), d.scales[i + 2]));
    ValueId half = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_mul, growth, 0.5), extent);
    boxes.low[i] = n.binary(BinaryOp::k_sub, center, half);
    boxes.high[i] = n.binary(BinaryOp::k_add, center, half);
  }
  boxes.area = n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_sub, boxes.high[0], boxes.low[0]),
                        n.binary(BinaryOp::k_sub, boxes.high[1], boxes.low[1]));
  return boxes;
}

// Where one box of each line, `chosen` [lines], overlaps others too much: [lines, count]. Boxes without area overlap
// nothing.
ValueId overlaps(NodeImport& n, const Boxes& boxes, ValueId chosen, const Dim& count, double threshold) {
  Dim lines = n.shape(chosen)[0];
  auto one = [&](ValueId of) { return n.build.reshape(n.build.take(of, chosen, 0), {lines, 1}); };
  auto all = [&](ValueId of) { return n.build.reshape(of, {1, count}); };
  ValueId common = kNoValue;
  for (size_t i = 0; i < 2; ++i) {
    ValueId high = n.binary(BinaryOp::k_min, one(boxes.high[i]), all(boxes.high[i]));
    ValueId low = n.binary(BinaryOp::k_max, one(boxes.low[i]), all(boxes.low[i]));
    ValueId extent = n.binary(BinaryOp::k_max, n.binary(BinaryOp::k_sub, high, low), 0.0);
    common = i == 0 ? extent : n.binary(BinaryOp::k_mul, common, extent);
  }
  ValueId whole =
      n.binary(BinaryOp::k_sub, n.binary(BinaryOp::k_add, one(boxes.area), all(boxes.area)), common);
  ValueId over = n.binary(BinaryOp::k_gt, n.binary(BinaryOp::k_div, common, whole), threshold);
  return n.binary(BinaryOp::k_and, over, n.binary(BinaryOp::k_gt, common, 0.0));
}

// What was chosen of each line, in descending order of the scores; a score of -inf: nothing.
struct Chosen {
  ValueId boxes, scores;  // [rounds, lines]
  int64_t rounds;
};

// `scores` [lines, count].
Expected<Chosen> suppress(NodeImport& n, const Boxes& boxes, ValueId scores, int64_t rounds,
                          const Detection& d) {
  Dim lines = n.shape(scores)[0], count = n.shape(scores)[1];
  ValueId gone = n.scalar(DType::kF32, -INFINITY);
  auto any_left = [&](ValueId left) {
    return n.build.reduce(OpKind::k_reduce_or, n.binary(BinaryOp::k_gt, left, gone), {0, 1}, false);
  };
  ValueId first = n.build.where(n.binary(BinaryOp::k_ge, scores, d.least_score), scores, gone);
  LoopSpec loop{
      n.output_names[0],
      {first, n.full(DType::kI32, {rounds, lines}, 0), n.full(DType::kF32, {rounds, lines}, -INFINITY)},
      Dim(rounds),
      any_left(first)};
  auto step = [&](const Dim& round, const std::vector<ValueId>& carried) -> std::optional<LoopStep> {
    ValueId left = carried[0];
    Attributes best;
    best.ints = {1};
    best.dtype = DType::kI32;
    ValueId chosen = n.build.add(OpKind::k_reduce_argmax, {left}, std::move(best));
    ValueId score = n.build.reduce(OpKind::k_reduce_max, left, {1}, false);
    ValueId itself = n.binary(BinaryOp::k_eq, n.build.reshape(chosen, {lines, 1}),
                              n.build.reshape(n.positions(DType::kI32, count), {1, count}));
    ValueId dropped = n.binary(BinaryOp::k_or, itself, overlaps(n, boxes, chosen, count, d.least_overlap));
    ValueId next = n.build.where(dropped, gone, left);
    ValueId here =
        n.binary(BinaryOp::k_eq, n.positions(DType::kI32, rounds, 1), n.number(DType::kI32, round));
    return LoopStep{{next, n.build.where(here, chosen, carried[1]), n.build.where(here, score, carried[2])},
                    {},
                    any_left(next)};
  };
  std::optional<std::vector<ValueId>> results = build_loop(n.build, loop, step);
  if (!results) return internal_error("a loop without results", n.build.location());
  return Chosen{(*results)[1], (*results)[2], rounds};
}

// Results: zeros where `scores` [rows, columns] has -inf, and behind the rows and columns. `boxes` [rows] are places.
Status give_results(NodeImport& n, const Detection& d, const Boxes& boxes, ValueId chosen, ValueId classes,
                    ValueId scores, int64_t room, ValueId number) {
  Shape dims = n.shape(scores);
  ValueId found = n.binary(BinaryOp::k_gt, scores, -INFINITY), none = n.scalar(DType::kF32, 0);
  auto padded = [&](ValueId of) {
    Shape before(static_cast<size_t>(n.rank(of)), Dim(0)), after = before;
    after[0] = Dim(d.most * d.most_classes / room) - dims[0];
    after[1] = Dim(room) - dims[1];
    return n.build.pad(of, before, after);
  };
  std::vector<ValueId> corners;
  for (ValueId coordinate : {boxes.low[0], boxes.low[1], boxes.high[0], boxes.high[1]}) {
    ValueId one = n.build.reshape(n.build.take(coordinate, chosen, 0), {dims[0], 1});
    corners.push_back(n.build.reshape(n.build.where(found, one, none), {dims[0], dims[1], 1}));
  }
  int64_t all = d.most * d.most_classes;
  ValueId places = n.build.reshape(padded(n.build.cat(std::move(corners), 2)), {1, all, 4});
  ValueId names = n.build.where(found, n.build.cast(classes, DType::kF32), none);
  return n.set_outputs({places, n.build.reshape(padded(names), {1, all}),
                        n.build.reshape(padded(n.build.where(found, scores, none)), {1, all}),
                        n.build.reshape(n.build.cast(number, DType::kF32), {1})});
}

ValueId count_found(NodeImport& n, ValueId scores) {
  ValueId found = n.build.cast(n.binary(BinaryOp::k_gt, scores, -INFINITY), DType::kI32);
  return n.build.reduce(OpKind::k_reduce_sum, found, {0}, false);
}

// Each box is taken for its best class; the results name its best classes.
Status fast(NodeImport& n, const Detection& d, const Boxes& boxes, ValueId scores, int64_t count) {
  ValueId best = n.build.reshape(n.build.reduce(OpKind::k_reduce_max, scores, {1}, false), {1, count});
  QUERNEL_TRY(Chosen chosen, suppress(n, boxes, best, std::min(d.most, count), d));
  ValueId places = n.build.reshape(chosen.boxes, {chosen.rounds});
  ValueId rows = n.build.take(scores, places, 0);
  int64_t columns = std::min(d.most_classes, d.classes);
  ValueId classes = n.build.argsort(rows, 1, Dim(columns), true);
  Attributes along;
  along.ints = {1};
  ValueId values = n.build.add(OpKind::k_gather_elements, {rows, classes}, std::move(along));
  ValueId found = n.binary(BinaryOp::k_gt, chosen.scores, -INFINITY);
  values = n.build.where(found, values, n.scalar(DType::kF32, -INFINITY));
  ValueId number = count_found(n, n.build.reshape(chosen.scores, {chosen.rounds}));
  return give_results(n, d, boxes, places, classes, values, d.most_classes, number);
}

// Boxes are taken class by class; of all the best ones remain.
Status regular(NodeImport& n, const Detection& d, const Boxes& boxes, ValueId scores, int64_t count) {
  QUERNEL_TRY(Chosen chosen,
              suppress(n, boxes, n.build.permute(scores, {1, 0}), std::min(d.most_per_class, count), d));
  int64_t all = chosen.rounds * d.classes, rows = std::min(d.most, all);
  auto by_class = [&](ValueId of) { return n.build.reshape(n.build.permute(of, {1, 0}), {all}); };
  ValueId candidates = by_class(chosen.scores);
  ValueId order = n.build.argsort(candidates, 0, Dim(rows), true);
  ValueId values = n.build.take(candidates, order, 0);
  ValueId classes = n.binary(BinaryOp::k_idiv, order, static_cast<double>(chosen.rounds));
  return give_results(n, d, boxes, n.build.take(by_class(chosen.boxes), order, 0),
                      n.build.reshape(classes, {rows, 1}), n.build.reshape(values, {rows, 1}), 1,
                      count_found(n, values));
}

}  // namespace

// Operands: boxes [1, count, 4 or more], scores [1, count, classes, perhaps behind one of the background], anchors
// [count, 4]. Results: corners, classes, scores, and how many boxes were found.
Status import_detection_postprocess(NodeImport& n) {
  QUERNEL_TRY(Detection d, read_options(n));
  for (int i : {0, 1}) QUERNEL_CHECK(n.expect_rank(i, 3, 3));
  QUERNEL_CHECK(n.expect_rank(2, 2, 2));
  QUERNEL_TRY(std::vector<int64_t> offsets, n.dims(n.in(0)));
  QUERNEL_TRY(std::vector<int64_t> scores, n.dims(n.in(1)));
  QUERNEL_TRY(std::vector<int64_t> anchors, n.dims(n.in(2)));
  int64_t count = offsets[1], background = scores[2] - d.classes;
  if (offsets[0] != 1 || offsets[2] < 4 || count < 1)
    return n.invalid("expected boxes [1,count,4], found " + to_string(n.shape(n.in(0))));
  if (scores[0] != 1 || scores[1] != count || background < 0 || background > 1)
    return n.invalid("expected scores [1," + std::to_string(count) + "," + std::to_string(d.classes) +
                     "], or one more for the background, found " + to_string(n.shape(n.in(1))));
  if (anchors != std::vector<int64_t>{count, 4})
    return n.invalid("expected anchors [" + std::to_string(count) + ",4], found " +
                     to_string(n.shape(n.in(2))));
  Boxes boxes = decode_boxes(n, d, count);
  ValueId of_classes =
      n.build.slice(n.build.reshape(n.real(1), {count, scores[2]}), {0, background}, {count, scores[2]});
  return d.regular ? regular(n, d, boxes, of_classes, count) : fast(n, d, boxes, of_classes, count);
}

}  // namespace quernel::tflite_import
