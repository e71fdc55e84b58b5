#include "schedule/contraction/tile_estimates.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "schedule/contraction/contraction_plan.h"
#include "schedule/contraction/sliding_windows.h"

namespace quernel::schedule {
namespace {

using Axis = ContractionPlan::Axis;

constexpr int kMostRowPointers = 10;   // that stay in registers
constexpr int kMostWeightsKept = 3;    // of a depthwise window, in scalar registers
constexpr int kMostRowsCounted = 256;  // of which the last tile's matter to an estimate
constexpr double kWidening = 1.5;      // what it takes to widen a vector of a quantised b, in multiply-adds
// Of a tile whose rows share elements; more were up to 1.1 times slower on Zen 4.
constexpr int kMostRowsOfWindows = 10;

// Whether words of bytes become pairs of 16-bit elements, two products of which are one instruction.
bool sums_pairs(const ContractionPlan& plan, const Target& target) {
  return plan.integers && plan.dot == 4 && target.has_dot_pairs;
}

// Instructions of a step of a sum: one, or for words of bytes what pairs of 16-bit elements take.
double dot_instructions(const ContractionPlan& plan, const Target& target) {
  if (sums_pairs(plan, target)) return 2;
  if (plan.sums_lanes) return plan.lanes;
  return !plan.integers || plan.dot == 1 || has_dots(target) ? 1 : 4;
}

// Lines at that distance, in bytes, which L1 holds at a time: a power of two leads to few of its sets.
int64_t lines_held(const Target& target, int64_t distance) {
  const CoreModel& core = target.core;
  int64_t way = std::max(target.l1_bytes / core.l1_ways, core.line_bytes);
  return way / std::max(std::gcd(way, distance), core.line_bytes) * core.l1_ways;
}

// How much longer a tile takes whose rows of a are streams along the sum, more of them than L1
// holds lines at their distance. Measured on Zen 4 with sums of 1024 steps: 10, 12, 13 and 14
// rows 1.02, 1.12, 1.2, 1.3.
double crowding(const ContractionPlan& plan, const Target& target, int m) {
  constexpr double kOfSquare = 0.008;
  if (plan.elementwise || plan.row_axes.empty() || plan.reduction_axes.empty() || !target.has_caches())
    return 1;
  const Dim& row = plan.axes[plan.row_axes.back()].a;
  if (!is_one(plan.axes[plan.reduction_axes.back()].a) || !row.is_const() || row.value() <= 0) return 1;
  int64_t distance = row.value() * target.vector_bytes / plan.lanes / plan.dot;
  double beyond = std::max<double>(0, static_cast<double>(m - lines_held(target, distance)));
  return 1 + kOfSquare * beyond * beyond;
}

// Instructions of one step of integer sums on a core whose sums of lanes are in scalar registers (MVE), of a few registers
// for vectors. Depthwise, vectors are multiplied and then added; those that `m` rows share are stored and loaded again
// where more than kSharing rows of them are there. Of 3x3 windows, 4 rows took the fewest.
double step_instructions(const ContractionPlan& plan, int m, double v) {
  constexpr double kSharing = 4, kLoop = 1;
  const double vectors = std::ceil(v);
  if (plan.sums_lanes) {
    const double columns = vectors * plan.lanes;
    return m * columns + m + columns + kLoop;
  }
  if (plan.elementwise) return 3 * m * vectors + vectors + 2 * std::max(0.0, m * vectors - kSharing);
  // Of words, the four bytes of columns and of rows come apart.
  if (plan.dot == 4) return 7 * vectors + m * (5 + 4 * vectors) + kLoop;
  return vectors + m * (1 + vectors) + kLoop;
}

// A norm of high order: somewhat above the largest of limits that lie close together, none of which is reached while
// another is near.
double nearly_largest(std::initializer_list<double> limits) {
  constexpr double kOrder = 8;
  double sum = 0;
  for (double limit : limits) sum += std::pow(limit, kOrder);
  return std::pow(sum, 1 / kOrder);
}

// What a step of a tile of int8 dot products takes. A load of a is for 4 or 16 steps, a word of b for several; the scales
// of a block take a conversion and two multiply-adds for each accumulator (one where a row has one scale), two instructions
// more for each further digit.
struct ByteStep {
  double operations = 0, loads = 0;
};
ByteStep byte_step(const ContractionPlan& plan, double m, double v) {
  constexpr double kSteps = 4;
  const ContractionPlan::Blocks& blocks = *plan.blocks;
  const double of_block = blocks.row_of_a != 0 ? 2 : 3;
  const auto per_word = static_cast<double>(blocks.per_word()), steps = static_cast<double>(blocks.steps),
             digits = static_cast<double>(blocks.digits_of_a);
  const double unpacking = blocks.format.bits == 8 ? 0 : 2 * per_word / kSteps - 1;
  // In halves of words a product and its addition are two instructions, and a block's sums one more. Two rows by two columns
  // are eight steps for as many accumulators.
  const double in_halves = blocks.words_in_halves != 0 ? 1 : 0,
               of_product = plan.pairs_rows ? 2 * kSteps : kSteps;
  return {m * v *
                  (digits * (1 + in_halves) / of_product +
                   (of_block + 2 * (digits - 1) + digits * in_halves) / steps) +
              v * unpacking / per_word,
          m * digits / static_cast<double>(blocks.bytes_at_once) + std::ceil(v) / per_word +
              (2 * m + std::ceil(v)) / steps};
}

// Cycles of such a step where sums are in halves of words: its products and additions share three pipes, all instructions a
// front end of four. Sums of floats without a register are loaded and stored once a block. On Zen 3 256 rows took 2.67 ms
// by 4x16, 2.70 to 2.78 by 3x16, 5x16 and 2x24, 3.1 by 6x8.
double halves_cycles(const ContractionPlan& plan, const Target& target, double m, double v) {
  constexpr double kPipes = 3, kIssued = 4;
  const ContractionPlan::Blocks& blocks = *plan.blocks;
  const ByteStep step = byte_step(plan, m, v);
  const double registers = (1 + blocks.digits_of_a) * m * v + 2 * v + 2;
  const double spilled =
      2 * std::max(0.0, registers - target.vector_registers) / static_cast<double>(blocks.steps);
  return nearly_largest({step.operations / kPipes, (step.loads + spilled / 2) / target.core.loads_per_cycle,
                         (step.operations + step.loads + spilled) / kIssued});
}

// Cycles of one step of a register tile's sum. Several limits lie close together and none is reached while
// another is near, which a norm of high order says (fitted to tiles from 2x6 to 12x1 on Zen 5, within 4 %):
// multiply-adds, loads, the latency of a multiply-add, and, where a panel outgrows L1, its bytes from L2.
// `v`: where the last vector is a short one, it counts as a part of one.
double step_cycles(const ContractionPlan& plan, const Target& target, int m, double v, double steps) {
  const CoreModel& core = target.core;
  if (plan.integers && target.lane_sums != 0) return step_instructions(plan, m, v);
  if (plan.blocks && plan.blocks->words_in_halves != 0) return halves_cycles(plan, target, m, v);
  if (plan.blocks && plan.blocks->group_of_a != 0) {
    constexpr double kSteps = 4;  // that one dot product takes
    const ByteStep step = byte_step(plan, m, v);
    return nearly_largest({step.operations / target.peak_fma_per_cycle, step.loads / core.loads_per_cycle,
                           core.fma_latency / kSteps});
  }
  double multiply_adds = m * v * dot_instructions(plan, target) / target.peak_fma_per_cycle;
  if (plan.blocks && !plan.widens_panels) multiply_adds += v * kWidening / target.peak_fma_per_cycle;
  const auto of_a = m / static_cast<double>(steps_at_once(plan, target));
  double loads = plan.elementwise ? m * std::ceil(v) + std::ceil(v) : of_a + std::ceil(v);
  if (sums_pairs(plan, target)) return multiply_adds + loads + 2 * (m + v) + 3.0 / kMostWordsAtOnce;
  // The loop takes three instructions; rows of a further apart than an offset reaches take one each.
  if (target.single_issue) return multiply_adds + loads + m / 2.0 + 3;
  // Rows at no fixed distance have a pointer each; more of them than there are registers are loaded, too.
  if (!plan.elementwise && !target.lanes_are_invocations() && m > kMostRowPointers && !rows_are_even(plan, m))
    loads += m;
  loads /= core.loads_per_cycle;
  double element = static_cast<double>(target.vector_bytes) / plan.lanes;
  double bytes = (v * plan.lanes + m) * element;
  bool near = bytes * steps <= static_cast<double>(target.l1_bytes) / 2;
  const double from_l2 = near || plan.elementwise ? 0 : bytes / core.l2_bytes_per_cycle;
  return nearly_largest({multiply_adds, loads, core.fma_latency, from_l2}) * crowding(plan, target, m);
}

// What the unrolled steps of a depthwise tile take longer where there are too few registers for what they
// could share of a: rows along a window's last axis share its vectors from one element of the window to the
// next; rows along another axis share those of three elements from one row of the window to the next, a
// vector of columns at a time. Measured on Zen 4: 1.12 to 1.27, and 1.2 to 1.7.
double spills(const ContractionPlan& plan, const Target& target, int m, int v, double steps) {
  if (!plan.elementwise || steps > kUnrolledSteps || (plan.integers && target.lane_sums != 0)) return 1;
  bool slides = is_zero(plan.axes[plan.vector_axis].b);
  if (slides) return m * v + 3 * (m + 2) > target.vector_registers + 4 ? 1.5 : 1;
  return 2 * m * v + v + 2 > target.vector_registers ? 1.2 : 1;
}

// Whether the lines of a vector's columns that a row of windows sees push one another out of L1,
// for they lie at a distance that leads to few of its sets, as 256 or 512 channels do.
bool lines_conflict(const ContractionPlan& plan, const Target& target) {
  const Slide& along = *windows_along_rows(plan);
  int64_t seen = (plan.axes[along.position].extent.value() - 1) * along.step + 1, lines = seen;
  for (const Slide& s : plan.windows)
    if (&s != &along) lines *= plan.axes[s.window].extent.value();
  return lines > lines_held(target, along.stride * target.vector_bytes / plan.lanes) / 2;
}

// Cycles of a tile of `m` rows whose windows share what they see of a (windows_along_rows), of which
// `vectors` are computed. Fitted to 3x3, 5x5 and 7x7 windows of steps 1 and 2 over images of 7x7 to 160x160
// on Zen 4, within 10 %.
double windows_cycles(const ContractionPlan& plan, const Target& target, int m, double vectors, double steps,
                      TileOrder order) {
  // L2 gives lines of images at half the speed of panels, whose lines are consecutive.
  constexpr double kTile = 4, kSpilled = 0.1, kSpeedOfLines = 0.5;
  const CoreModel& core = target.core;
  const double line = static_cast<double>(core.line_bytes);
  const Slide& along = *windows_along_rows(plan);
  double window = size_of(plan.axes[along.window].extent), passes = steps / window, v = std::ceil(vectors);
  double seen = std::min((m - 1.0) * along.step, (m - 1) * window) + window;  // elements, in each pass
  double multiply_adds = m * vectors * steps * dot_instructions(plan, target) / target.peak_fma_per_cycle;
  double loads = (seen + window) * v * passes / core.loads_per_cycle;
  // A line comes from L2 for each pass, or once where the next row of results finds it
  // near.
  double down = 1;
  for (const Slide& s : plan.windows)
    if (&s != &along) down *= static_cast<double>(s.step);
  double read = order == TileOrder::kRows ? down * static_cast<double>(along.step) * m : passes * seen;
  double element = static_cast<double>(target.vector_bytes) / plan.lanes;
  double width = size_of(plan.axes[plan.vector_axis].extent) * element;
  double run = std::ceil(vectors * plan.lanes * element / line) * line;
  if (std::fmod(width, line) != 0) run += line / 2;
  if (lines_conflict(plan, target)) run += line;
  const double limit = nearly_largest({multiply_adds, loads, core.fma_latency * steps,
                                       read * run / (kSpeedOfLines * core.l2_bytes_per_cycle)});
  double registers = m * v + (window + 1) * v, spilled = std::max(0.0, registers - target.vector_registers);
  return limit * (1 + kSpilled * spilled) + kTile + 2.0 * m * vectors;
}

// Whether accumulators and what a step needs besides them have registers.
bool fits_registers(const ContractionPlan& plan, const Target& target, int m, int v) {
  bool scalars = plan.integers && target.registers_are_few();
  int registers = scalars ? target.integer_registers : target.vector_registers;
  // Pairs of the shorter side stay, those of the other come one word after the other; each row has a pointer.
  if (sums_pairs(plan, target)) return m * v + 2 * std::min(m, v) + m + 2 <= registers;
  bool halves =
      !plan.sums_lanes && dot_instructions(plan, target) > 1;  // even and odd bytes, each in a register
  // Accumulators of a block next to those of the sum, and the words of a step; for several rows the columns of four words
  // of a, too, and, next to sums that get one scale, rows of bytes that are loaded ahead: a prompt of 64 by i8:row on a Cortex-A76
  // takes 3.7 % fewer instructions by 8x4 than by 11x4, which spills.
  if (plan.blocks) {
    const int digits = plan.blocks->group_of_a != 0 ? plan.blocks->digits_of_a : 1;
    // Single rows have two sums for each column of a pair.
    if (plan.blocks->pairs && !plan.pairs_rows) return 3 * m * v + 2 * v + 2 <= registers;
    constexpr int kAhead = 6;
    if (plan.blocks->bytes_at_once > 4 && m > 1)
      return (1 + digits) * m * v + 4 * v + 2 + digits +
                 (plan.blocks->row_of_a != 0 && !plan.pairs_rows ? kAhead : 0) <=
             registers;
    // Sums of floats are needed once a block: where registers are short, memory keeps them.
    if (plan.blocks->words_in_halves != 0) return digits * m * v + 2 * v + 2 <= registers;
    if (!plan.widens_panels) return (1 + digits) * m * v + 2 * v + 2 <= registers;
  }
  int extra = plan.elementwise ? v + 2 : halves ? 2 * v + 4 : v + (steps_at_once(plan, target) > 1 ? m : 1);
  if (plan.elementwise &&
      scalars) {  // a row of the window's weights stays, an element of a, and two pointers
    const Dim window = plan.reduction_axes.empty() ? Dim(1) : plan.axes[plan.reduction_axes.back()].extent;
    extra = (static_cast<int>(std::min<int64_t>(window.estimate(), kMostWeightsKept)) + 1) * v + 2;
  }
  return m * v + extra <= registers;
}

// The same of one step of an invocation's part of a tile on a GPU with local memory: its instructions, in
// multiply-adds. An element that all invocations read comes as one.
double invocation_step(const ContractionPlan& plan, const Target& target) {
  constexpr double kSharedVector = 4;  // neighbours in workgroup memory that one load brings
  double m = plan.tile_m, v = plan.tile_v, load = target.load_multiply_adds;
  double loads = plan.elementwise ? load * (m * v + v) : load * v;
  if (shares_rows(plan))
    loads += target.shared_load_multiply_adds * m / kSharedVector +
             (load + target.shared_load_multiply_adds) * m / plan.lanes +
             target.barrier_multiply_adds / plan.shared_steps;
  else if (plan.rows_in_workgroup)
    loads += target.shared_load_multiply_adds * m / kSharedVector;
  else if (!plan.elementwise)
    loads += load * m;
  return m * v * dot_instructions(plan, target) + loads;
}

// How much longer a GPU takes with `workgroups` than if they kept all of it busy: one with too little to do
// waits as long as a full one. Independent multiply-adds of an invocation hide latencies as other invocations
// do (Volkov, "Better performance at lower occupancy", 2010).
double idle_share(const ContractionPlan& plan, const Target& target, double workgroups) {
  constexpr int kIndependent = 4;
  double wanted =
      static_cast<double>(target.parallel_invocations) / std::min(plan.tile_m * plan.tile_v, kIndependent);
  return std::max(1.0, wanted / (workgroups * plan.lanes));
}

// Rows that a tile may have: on a GPU with local memory many, for only they make more of what an invocation
// reads of b.
std::vector<int> tile_heights(const Target& target) {
  std::vector<int> heights(kMostTileRows);
  std::iota(heights.begin(), heights.end(), 1);
  if (target.local_memory) heights.insert(heights.end(), {16, 20, 24, 28, 32, 40, 48, 56, 64});
  return heights;
}

// Whether a workgroup's memory holds the rows that a tile shares and the tile: an epilogue may want it there.
bool fits_workgroup(const ContractionPlan& plan, const Target& target) {
  constexpr int64_t kNarrowest = 4;  // bytes of an element there
  const int64_t element = std::max<int64_t>(kNarrowest, target.vector_bytes / plan.lanes);
  const int64_t shared = shares_rows(plan) ? 2 * plan.shared_steps * shared_pitch(plan) * element : 0;
  return plan.tile_m == 1 ||
         int64_t{plan.tile_m} * plan.tile_v * target.vector_bytes + shared <= target.workgroup_memory;
}

// Cycles of a tile of which `vectors` are computed.
double tile_cycles(const ContractionPlan& plan, const Target& target, double vectors, double steps) {
  int m = plan.tile_m, v = plan.tile_v;
  double step = target.local_memory
                    ? invocation_step(plan, target)
                    : step_cycles(plan, target, m, vectors, steps) * spills(plan, target, m, v, steps);
  double turned = 0;
  if (transposes_tiles(plan, target)) {  // a power of two of rows at a time, however many there are
    int at_once = std::min(plan.lanes, static_cast<int>(std::bit_ceil(static_cast<unsigned>(m))));
    turned = kTranspose * plan.lanes * ((m + at_once - 1) / at_once * at_once) * vectors;
  }
  return steps * step + 12 + 2.0 * m * vectors + turned;
}

// Of the cycles of a whole vector: half where the processor computes a wide one in two halves, else all.
constexpr double kShortVector = 0.75;

// Where each step of a sum reads a on another line, the larger operand passes once: all of a for each tile's
// columns, or all of packed b for its rows. It matters where a outgrows half of L2.
// Rows of a that lie together along the sum come as streams, and are as fast to read again (measured on Zen
// 5).
TileOrder tile_order(const ContractionPlan& plan, const Target& target) {
  const double line = static_cast<double>(target.core.line_bytes);
  if (plan.gathers_rows || plan.pairs_rows) return TileOrder::kColumns;
  // Elementwise a has columns of its own, and is so read in order; but where it is near, a tile's columns of
  // the rows that windows share should stay in L1.
  if (plan.elementwise) {
    double a = static_cast<double>(target.vector_bytes) / plan.lanes;
    for (const Axis& axis : plan.axes)
      if (!axis.reduction && !is_zero(axis.a)) a *= size_of(axis.extent);
    for (const Slide& s : plan.windows) a *= static_cast<double>(s.step);
    bool near = a <= 3 * static_cast<double>(target.l2_bytes);
    bool stays = windows_along_rows(plan) && near && !lines_conflict(plan, target);
    return stays ? TileOrder::kRows : TileOrder::kColumns;
  }
  if (!plan.packed || plan.reduction_axes.empty() || !target.has_caches()) return TileOrder::kRows;
  auto span = [&](int i) { return (size_of(plan.axes[i].extent) - 1) * std::abs(size_of(plan.axes[i].a)); };
  double a = 1;  // between its first and last element, gaps of a strided image included
  for (int i : plan.row_axes) a += span(i);
  for (int i : plan.reduction_axes) a += span(i);
  double b = size_of(reduction_count(plan)) * size_of(plan.axes[plan.vector_axis].extent);
  double element = static_cast<double>(target.vector_bytes) / plan.lanes / plan.dot;
  bool scattered = std::abs(size_of(plan.axes[plan.reduction_axes.back()].a)) * element >= line;
  bool outgrows = a * element > static_cast<double>(target.l2_bytes) / 2;
  return scattered && outgrows && a > b ? TileOrder::kColumns : TileOrder::kRows;
}

}  // namespace

bool has_dots(const Target& target) {
  return target.has_dot_u8_s8 || target.has_dot_s8_s8 || target.has_dot_u8_u8;
}

std::vector<TileEstimate> tile_estimates(ContractionPlan plan, const Target& target, int panel_v) {
  double rows = size_of(product(plan.axes, plan.row_axes));
  double columns = plan.vector_axis >= 0 ? size_of(plan.axes[plan.vector_axis].extent) : 1;
  double steps = size_of(plan.blocks ? reduction_count(plan) : panel_rows(plan)),
         grid = size_of(product(plan.axes, plan.grid_axes));
  std::vector<TileEstimate> result;
  size_t best = 0;
  TileOrder order = tile_order(plan, target);
  if (plan.matrices) {                          // whose shape is theirs
    constexpr double kMultiplyAdds = 1.0 / 16;  // of an invocation's, for one of a matrix unit's
    constexpr int kSide = Target::kMatrixSide;
    const double tiles = std::ceil(rows / kSide) * std::ceil(columns / kSide);
    return {{{.rows = kSide, .columns = kSide, .order = order},
             tiles * size_of(reduction_count(plan)) * kSide * kMultiplyAdds}};
  }
  for (int v : {1, 2, 3, 4, 6, 8}) {
    if (plan.packed && panel_v != 0 && !fits_panels(plan, v, panel_v, std::ceil(columns / plan.lanes)))
      continue;
    // Columns that do not exist would take flash.
    if (sums_pairs(plan, target) && plan.packed && v > 1 && std::fmod(columns, v) != 0) continue;
    for (int m : tile_heights(target)) {
      if (m > rows && m > 1) break;
      plan.tile_v = v, plan.tile_m = m;
      if (target.workgroup_memory != 0 && !fits_workgroup(plan, target)) break;
      if (!fits_registers(plan, target, m, v) && !(m == 1 && v == 1)) break;
      if (plan.sums_lanes && m * plan.tile_n() > target.lane_sums) break;
      if (plan.pairs_rows && m % 2 != 0 && m > 1) continue;
      double tiles = std::ceil(columns / static_cast<double>(plan.tile_n()));
      std::optional<TileVectors> rest = tail_columns(plan, target);
      auto all_columns = [&](const auto& cycles_of) {
        double last = rest ? cycles_of(rest->vectors + (rest->short_lanes != 0 ? kShortVector : 0)) : 0;
        return (rest ? tiles - 1 : tiles) * cycles_of(v) + last;
      };
      const bool windows = windows_along_rows(plan);
      if (windows && m > kMostRowsOfWindows) break;
      auto row_of_tiles = [&](int of_tile) {
        plan.tile_m = of_tile;
        double cycles = all_columns([&](double vectors) {
          return windows ? windows_cycles(plan, target, of_tile, vectors, steps, order)
                         : tile_cycles(plan, target, vectors, steps);
        });
        plan.tile_m = m;
        return cycles;
      };
      // The last tile has code of its own, but not where lanes are invocations, code is dear, or where rows come in blocks: of
      // staged images, and of products of activations, which attention takes. Of many rows it weighs less
      // than what the estimates are wrong by.
      int left = static_cast<int>(std::fmod(rows, m));
      bool own_code = !target.lanes_are_invocations() && !target.code_is_dear() && plan.packed &&
                      !plan.widens_panels && row_count(plan).is_const() && rows <= kMostRowsCounted;
      if (left != 0 && !own_code) left = m;
      double cycles = std::floor(rows / m) * row_of_tiles(m) + (left != 0 ? row_of_tiles(left) : 0);
      if (target.local_memory) cycles *= idle_share(plan, target, grid * tiles * std::ceil(rows / m));
      result.push_back({{.rows = m, .columns = int64_t{v} * plan.lanes, .order = order}, cycles});
      if (cycles < result[best].cycles * 0.999) best = result.size() - 1;
    }
  }
  std::swap(result[0], result[best]);
  std::stable_sort(result.begin() + 1, result.end(),
                   [](const TileEstimate& a, const TileEstimate& b) { return a.cycles < b.cycles; });
  return result;
}

std::vector<Tiling> tilings(const ContractionPlan& plan, const Target& target, int panel_v) {
  std::vector<Tiling> result;
  for (const TileEstimate& e : tile_estimates(plan, target, panel_v)) result.push_back(e.tiling);
  return result;
}

double contraction_seconds(const ContractionPlan& plan, const Target& target, double workgroups) {
  constexpr double kFlops = 2;  // of a multiply-add
  double tiles = size_of(product(plan.axes, plan.grid_axes)) * size_of(column_tile_count(plan)) *
                 std::ceil(size_of(row_count(plan)) / plan.tile_m);
  double cycles = tiles * tile_cycles(plan, target, plan.tile_v, size_of(panel_rows(plan))) *
                  idle_share(plan, target, workgroups != 0 ? workgroups : tiles);
  return cycles * plan.lanes * kFlops / target.flops_per_second;
}

}  // namespace quernel::schedule
