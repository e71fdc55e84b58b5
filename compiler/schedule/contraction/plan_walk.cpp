#include "schedule/contraction/plan_walk.h"

#include <algorithm>
#include <numeric>

#include "schedule/contraction/image_layout.h"
#include "schedule/contraction/tile_loops.h"
#include "schedule/kernel_limits.h"

namespace quernel::schedule {
namespace {

constexpr int64_t kFewestSharing = 32, kRowsSharing = 512;  // rows that read a gathered column

// Whether a non-contiguous column of b is gathered first. Many rows must read it, and it must fit in a cache
// where its steps would evict one another: their distance maps them to few of the cache's sets.
bool gathers_columns(const ContractionPlan& plan, const Dim& rows, const ContractionDTypes& dtypes,
                     const Target& target) {
  if (target.lanes_are_invocations() || plan.packed || plan.elementwise || plan.staged ||
      plan.reduction_axes.empty())
    return false;
  Dim steps = reduction_count(plan), stride = plan.axes[plan.reduction_axes.back()].b;
  if (!steps.is_const() || !stride.is_const() || rows.estimate() < kFewestSharing) return false;
  const CoreModel& core = target.core;
  int64_t row = plan.tile_n() * element_size(dtypes.accumulator);
  int64_t lines = (row + core.line_bytes - 1) / core.line_bytes;
  int64_t apart = std::max<int64_t>(stride.value() * element_size(dtypes.b) / core.line_bytes, 1);
  auto overflows = [&](int64_t cache, int64_t ways) {
    int64_t sets = std::max<int64_t>(cache / core.line_bytes / ways, 1);
    int64_t places = std::min(sets, sets / std::gcd(sets, apart) * lines) * ways;
    return steps.value() * row <= cache / 2 && steps.value() * lines > places;
  };
  return overflows(target.l1_bytes, core.l1_ways) || overflows(target.l2_bytes, core.l2_ways);
}

// Rows that share a gathered column: blocks of equal size.
int64_t rows_sharing(const ContractionPlan& plan) {
  const int64_t most = kRowsSharing / plan.tile_m * plan.tile_m;
  const Dim rows = row_count(plan);
  if (!rows.is_const()) return most;
  return (rows.value() - 1) / ((rows.value() - 1) / most + 1) / plan.tile_m * plan.tile_m + plan.tile_m;
}

// Rows of tiles whose im2row buffer takes half of L1: equal blocks of whole tiles.
int64_t rows_of_image(const ContractionPlan& plan, int64_t element_bytes, const Target& target) {
  const ImageLayout layout = image_layout(plan);
  const int64_t rows = row_count(plan).value(), tile = plan.tile_m;
  auto bytes = [&](int64_t n) { return layout.elements(image_rows(plan, n)) * element_bytes; };
  int64_t most = tile;
  while (most < rows && bytes(most + tile) <= target.l1_bytes / 2) most += tile;
  const int64_t blocks = (rows + most - 1) / most;
  return ((rows + blocks - 1) / blocks + tile - 1) / tile * tile;
}

// Positions along a grid axis whose im2row buffer, of b, stays in L1: equal blocks.
int64_t lines_of_image(const ContractionPlan& plan, int64_t element_bytes, const Target& target) {
  const ImageLayout layout = image_layout(plan);
  const int64_t lines = plan.axes[plan.staged->rows.position].extent.value();
  auto bytes = [&](int64_t n) { return layout.elements(image_rows(plan, n)) * element_bytes; };
  int64_t most = 1;
  while (most < lines && bytes(most + 1) <= target.l1_bytes) ++most;
  const int64_t blocks = (lines + most - 1) / most;
  return (lines + blocks - 1) / blocks;
}

// Steps of a sum of words that are unrolled. A loop takes four or five instructions, the words of a 2x2 tile 20 each.
// Eight words at a time took 0.01 to 0.02 instructions per multiply-add less on a Cortex-M4, and a third more code
// (tests/bench/tiny.sh).
std::vector<int64_t> unrolled_words(const ContractionPlan& plan) {
  std::vector<int64_t> unrolled(plan.reduction_axes.size(), 1);
  int64_t left = kMostWordsAtOnce;
  for (size_t i = unrolled.size(); i-- > 0;) {
    const Dim& extent = plan.axes[plan.reduction_axes[i]].extent;
    if (!extent.is_const()) break;
    int64_t steps = i + 1 == unrolled.size() ? extent.value() / plan.dot : extent.value();
    for (int64_t n = 2; n <= std::min(left, steps); ++n)
      if (steps % n == 0) unrolled[i] = n;
    left /= std::max<int64_t>(steps, 1);
    if (unrolled[i] < steps || left < 2) break;
  }
  return unrolled;
}

// Steps of a sum that an invocation of a GPU has unrolled, so that it loads neighbours of a row at once, and those of several
// columns meanwhile.
std::vector<int64_t> unrolled_steps(const ContractionPlan& plan) {
  constexpr int64_t kSteps = 4, kMost = 256;  // multiply-adds that are unrolled
  if (!plan.packed || plan.elementwise || plan.staged || plan.dot > 1 || plan.blocks || plan.matrices ||
      shares_rows(plan) || plan.reduction_axes.empty())
    return {};
  const ContractionPlan::Axis& last = plan.axes[plan.reduction_axes.back()];
  if (!is_one(last.a) || !(floormod(last.extent, kSteps) == Dim(0)) ||
      kSteps * plan.tile_m * plan.tile_v > kMost)
    return {};
  std::vector<int64_t> unrolled(plan.reduction_axes.size(), 1);
  unrolled.back() = kSteps;
  return unrolled;
}

// With few registers a row's elements and the accumulators have no place at a time, and where code is dear every load
// counts: each element is multiplied by the weights of all windows that contain it, and gives way to the next. All tiles
// are whole.
bool shares_elements(const ContractionPlan& plan, const Target& target) {
  constexpr int64_t kWidestWindow = 8;  // whose weights have code
  if (!plan.elementwise || !plan.integers || !target.code_is_dear() || plan.tile_m == 1) return false;
  const std::optional<Slide> slide = row_windows(plan);
  return slide && plan.axes[slide->window].extent.value() <= kWidestWindow &&
         plan.axes[slide->position].extent.value() % plan.tile_m == 0;
}

// How far ahead lines of packed b are asked for: where each is read once, at the speed of memory. Where hardware prefetchers
// follow streams, only kernels need it whose instructions leave the core no room to run ahead: tokens of a language model by
// three digits and words of 4 bits take 3.66 ms with and 3.87 without, all others 1.03 to 1.3 times as long with (Zen 4).
int64_t prefetch_bytes(const ContractionPlan& plan, const Target& target) {
  constexpr int kByte = 8;
  const bool once = plan.packed && !plan.elementwise && !plan.widens_panels && row_count(plan).is_const() &&
                    row_count(plan).value() <= plan.tile_m;
  const bool is_busy = plan.blocks && plan.blocks->digits_of_a > 1 && plan.blocks->format.bits < kByte;
  return once && (target.asks_ahead() || (target.has_caches() && is_busy)) ? kPrefetchBytes : 0;
}

// The passes over the words of a column tile, which is long in use where several tiles of rows read it. Words of a tile that is
// narrower than half a line are asked for by others.
int64_t prefetch_passes(const ContractionPlan& plan, const Dim& rows, const Target& target) {
  constexpr int64_t kWordBytes = 4;
  if (!plan.blocks || !target.has_caches() || plan.tile_n() * kWordBytes < kPrefetchedLine / 2) return 0;
  if (plan.widens_panels) return 1;
  return rows.estimate() <= plan.tile_m ? 0 : rows.estimate() / plan.tile_m;
}

// What holds wherever the tiles are.
TileWalk walk_of_any(const ContractionPlan& plan, const Dim& rows, const ContractionDTypes& dtypes,
                     const Target& target) {
  TileWalk walk;
  walk.group_work = target.shares_work() ? plan.group_work : Target::kAllWork;
  walk.gathers_columns = plan.widens_panels || gathers_columns(plan, rows, dtypes, target);
  walk.prefetch_bytes = prefetch_bytes(plan, target);
  walk.prefetch_passes = prefetch_passes(plan, rows, target);
  walk.tail_columns = tail_columns(plan, target);
  walk.transposes = transposes_tiles(plan, target);
  walk.steps_at_once = steps_at_once(plan, target);
  if (target.lanes_are_invocations()) walk.unrolled = unrolled_steps(plan);
  if (plan.dot == 4 && target.registers_are_few()) {
    walk.unrolled = unrolled_words(plan);
    // A word takes as many instructions as four elements and widens to do so.
    walk.rest_by_elements =
        plan.dot_shift == 0 && !(floormod(plan.axes[plan.reduction_axes.back()].extent, plan.dot) == Dim(0));
  }
  walk.single_bytes = plan.elementwise && dtypes.accumulator == DType::kI32 && is_byte(dtypes.a) &&
                      is_byte(dtypes.b) && target.has_dot(dtypes.a == DType::kI8, dtypes.b == DType::kI8);
  return walk;
}

}  // namespace

TileWalk plan_walk(const ContractionPlan& plan, const ContractionDTypes& dtypes, const Target& target) {
  TileWalk walk = walk_of_any(plan, row_count(plan), dtypes, target);
  if (plan.staged) {
    walk.block_rows = plan.elementwise ? rows_of_image(plan, element_size(dtypes.a), target)
                                       : lines_of_image(plan, element_size(dtypes.b), target);
  } else if (walk.gathers_columns) {
    walk.block_rows = rows_sharing(plan);
  } else {
    walk.loops = tile_loops(plan, target);
    // With few registers the tail's own code pays: all others then have even rows.
    const bool few = plan.integers && target.registers_are_few() && !plan.elementwise;
    walk.tail_rows = !target.lanes_are_invocations() && (!target.code_is_dear() || few);
    walk.shares_elements = shares_elements(plan, target);
    walk.even_rows = few && plan.tile_m > 1 && rows_are_even(plan, plan.tile_m);
  }
  return walk;
}

TileWalk plan_walk_of_block(const ContractionPlan& plan, int64_t rows, const ContractionDTypes& dtypes,
                            const Target& target) {
  return walk_of_any(plan, rows, dtypes, target);
}

}  // namespace quernel::schedule
