// Attention's blocks: how many rows of scores a kernel holds at a time, in which tiles it computes them and
// what it makes of them, and on a GPU whether that takes less time than kernels of their own.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "schedule/attention/attention_block.h"
#include "schedule/attention/row_softmax.h"
#include "schedule/contraction/tile_estimates.h"
#include "schedule/storage.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kMostBlockRows = 96;  // of a processor's block
constexpr int64_t kSharedBytes = 4;     // of an element in a workgroup's memory, at least

constexpr int64_t kMostKeysOfFree = 256;  // where only a run tells how many there are
constexpr int64_t kFewestRowsOfFree = 8;  // there: of many rows, fewer would read keys and values too often
constexpr int64_t kMostKeys = 512;        // of a row at a time: with more, folding of lanes hardly counts

// Instructions of an invocation, in multiply-adds, that a softmax takes for an element: an exponential, a
// division and what is loaded and stored around them. And the barriers of a fold of lanes, of which it has
// two for each part of a row.
constexpr double kRowWork = 24, kFoldBarriers = 8, kFolds = 2;

int64_t processor_rows(const ContractionPlan& scores, const ContractionPlan& result, int64_t width,
                       const Target& target) {
  int64_t m = scores.tile_m, n = result.tile_m;
  // Whole tiles of both, where that many rows of scores stay in L2.
  int64_t rows = std::clamp<int64_t>(target.l2_bytes / 2 / (4 * width), m, kMostBlockRows);
  int64_t both = std::lcm(m, n), unit = rows >= both ? both : m;
  rows = rows / unit * unit;
  if (Dim whole = row_count(scores); whole.is_const()) {  // equal blocks
    int64_t each = ceildiv(whole, ceildiv(whole, rows)).value();
    rows = (each + m - 1) / m * m;
  }
  return rows;
}

// Bytes of a workgroup's memory that a tile may need beside its block: a copy for an epilogue, and rows of a.
int64_t tile_bytes(const ContractionPlan& plan, const Target& target) {
  int64_t tile = plan.tile_m > 1 ? int64_t{plan.tile_m} * plan.tile_v * target.vector_bytes : 0;
  return tile + (shares_rows(plan) ? plan.shared_steps * shared_pitch(plan) * kSharedBytes : 0);
}

class Block {
 public:
  Block(const ContractionPlan& scores, const ContractionPlan& result, const ScoreRows& rows,
        const Target& target)
      : whole_{scores, result}, rows_(rows), target_(target) {
    whole_[1].rows_in_workgroup = true;
    whole_[1].shared_steps = 0;
    for (int i = 0; i < 2; ++i) tiles_[i] = tilings(whole_[i], target);
    count_ = row_count(scores);
    for (int axis : scores.grid_axes) matrices_ *= static_cast<double>(scores.axes[axis].extent.estimate());
  }

  // The fastest block that fits.
  AttentionBlock choose() {
    AttentionBlock best;
    for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64}) {
      if (rows > 1 && rows > count_.estimate()) break;
      if (!count_.is_const() && rows < std::min(kFewestRowsOfFree, count_.bounds().hi)) continue;
      for (bool in_parts : {false, true}) {
        if (in_parts && !rows_.in_parts) continue;
        ContractionPlan plans[2] = {whole_[0], whole_[1]};
        if (!take_tile(plans[1], tiles_[1], rows, in_parts, 0)) continue;
        int sums = in_parts ? plans[1].tile_m * plans[1].tile_v : 0;
        if (!take_tile(plans[0], tiles_[0], rows, false, sums)) continue;
        int64_t left = target_.workgroup_memory - tile_bytes(plans[0], target_) -
                       tile_bytes(plans[1], target_) - target_.vector_bytes;  // that folds of lanes exchange
        int64_t keys = 0, parts = 1;
        if (in_parts) {
          int64_t tile = plans[0].tile_n(), most = rows_.width.is_const() ? kMostKeys : kMostKeysOfFree;
          keys = std::min(left / (rows * kSharedBytes), std::max(most, tile)) / tile * tile;
          if (keys == 0 || (rows_.width.is_const() && keys >= rows_.width.value())) continue;
          parts = ceildiv(rows_.width, keys).estimate();
        } else if (!rows_.width.is_const() || rows * rows_.block_bytes + rows_.row_bytes > left) {
          continue;
        }
        double seconds = contraction_seconds(plans[0], target_, workgroups(rows)) +
                         contraction_seconds(plans[1], target_, workgroups(rows)) +
                         row_seconds(workgroups(rows), static_cast<double>(parts));
        if (best.rows != 0 && seconds >= seconds_) continue;
        best = {rows, keys}, seconds_ = seconds;
        chosen_[0] = plans[0], chosen_[1] = plans[1];
      }
    }
    return best;
  }

  const ContractionPlan& plan(int i) const { return chosen_[i]; }
  double seconds() const { return seconds_; }

  double row_seconds(double workgroups, double parts = 1) const {
    double wanted = static_cast<double>(target_.parallel_invocations) / target_.lanes(4);
    double folds = parts * kFolds * kFoldBarriers * target_.barrier_multiply_adds * target_.lanes(4);
    double work = all_rows() * (static_cast<double>(rows_.width.estimate()) * kRowWork + folds);
    return work * 2 / target_.flops_per_second * std::max(1.0, wanted / workgroups);
  }
  double all_rows() const { return matrices_ * static_cast<double>(count_.estimate()); }

 private:
  double workgroups(int64_t rows) const {
    return matrices_ * static_cast<double>(ceildiv(count_, rows).estimate());
  }

  // The fastest tile of which a whole number makes a block, one where it is to be `alone`. `taken`: registers
  // of an invocation that hold something else.
  bool take_tile(ContractionPlan& plan, const std::vector<Tiling>& tiles, int64_t rows, bool alone,
                 int taken) const {
    double best = -1;
    ContractionPlan trial = plan;
    for (const Tiling& tile : tiles) {
      if (rows % tile.rows != 0) continue;
      set_tiling(trial, tile);
      if (tile.columns - trial.lanes >= trial.axes[trial.vector_axis].extent.estimate() && trial.tile_v > 1)
        continue;  // a vector of no columns
      if (alone && (tile.rows != rows || !(column_tile_count(trial) == Dim(1)))) continue;
      if (taken != 0 && taken + trial.tile_m * trial.tile_v + trial.tile_v + 1 > target_.vector_registers)
        continue;
      double seconds = contraction_seconds(trial, target_, workgroups(rows));
      if (best >= 0 && seconds >= best) continue;
      best = seconds;
      plan = trial;
      plan.reason = "for blocks of " + std::to_string(rows) + " rows";
    }
    return best >= 0;
  }

  ContractionPlan whole_[2], chosen_[2];
  const ScoreRows& rows_;
  const Target& target_;
  std::vector<Tiling> tiles_[2];
  Dim count_ = 1;
  double matrices_ = 1, seconds_ = 0;
};

}  // namespace

ScoreRows score_rows(const Graph& graph, const Group& rows, ValueId scores) {
  ValueId weights = rows.outputs[0];
  ScoreRows result;
  result.width = graph.shape(weights).back();
  const std::vector<ValueId>& last = rows.stages.back().outputs;
  result.in_place = std::find(last.begin(), last.end(), weights) != last.end();
  auto bytes = [&](ValueId v) {
    return result.width.estimate() * std::max<int64_t>(kSharedBytes, element_size(graph.dtype(v)));
  };
  result.block_bytes = bytes(weights) + (result.in_place ? 0 : bytes(scores));
  for (const RowStage& stage : rows.stages)
    for (ValueId v : stage.locals)
      if (!graph.shape(v).empty() && !(graph.shape(v).back() == Dim(1))) result.row_bytes += bytes(v);
  result.in_parts = row_softmax(graph, rows, scores).has_value();
  if (!rows.parts.empty()) result.kernels = static_cast<int>(rows.parts.size()), result.passes = 0;
  for (const Group& part : rows.parts)
    result.passes += 1 + (graph.shape(part.outputs[0]) == graph.shape(scores) ? 1 : 0);
  return result;
}

AttentionBlock plan_block(ContractionPlan& scores, ContractionPlan& result, const ScoreRows& rows,
                          const Target& target) {
  if (target.workgroup_memory == 0)
    return {.rows = processor_rows(scores, result, rows.width.value(), target)};
  Block block(scores, result, rows, target);
  AttentionBlock best = block.choose();
  if (best.rows != 0) scores = block.plan(0), result = block.plan(1);
  return best;
}

bool attention_pays(const ContractionPlan& scores, const ContractionPlan& result, const ScoreRows& rows,
                    const Target& target) {
  if (target.workgroup_memory == 0) return true;
  Block block(scores, result, rows, target);
  if (block.choose().rows == 0) return false;
  // By themselves: the first writes all scores, the last reads all weights, and each but one waits for
  // another.
  double crossings = rows.passes + 2, waits = rows.kernels + 1;
  double bytes = block.all_rows() * static_cast<double>(rows.width.estimate()) * 4;
  double apart = contraction_seconds(scores, target) + contraction_seconds(result, target) +
                 block.row_seconds(block.all_rows()) + crossings * bytes / target.memory_bytes_per_second +
                 waits * target.dispatch_seconds;
  return block.seconds() < apart;
}

}  // namespace quernel::schedule
