// Tiling of contractions: which axis runs in vectors, which in rows, and the size of the register tile, by
// estimated cycles. Over 600 lines because roles and estimates read the same axes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "schedule/schedule.h"
#include "schedule/stage_image.h"

namespace quernel::schedule {
namespace {

using Axis = ContractionPlan::Axis;

// Vector instructions that reads along one axis need: contiguous and packed operands come in whole vectors.
struct Candidate {
  int axis = -1;
  bool swapped = false, elementwise = false, packed = false;
  int copy_operand = -1;
  double cost = 0;
};

Dim product(const std::vector<Axis>& axes, const std::vector<int>& which) {
  Dim n = 1;
  for (int i : which) n *= axes[i].extent;
  return n;
}

bool has_dots(const Target& target) {
  return target.has_dot_u8_s8 || target.has_dot_s8_s8 || target.has_dot_u8_u8;
}
bool is_zero(const Dim& d) { return d == Dim(0); }
bool is_one(const Dim& d) { return d == Dim(1); }
double size_of(const Dim& d) { return static_cast<double>(d.estimate()); }

// Multiply-adds of vectors that turning a tile round takes, for each of its elements.
constexpr double kTurned = 0.4;

// Columns where vectors run along output axis `i` and along those that will join it, a being the second
// operand where `swapped`.
double joined_columns(const std::vector<Axis>& axes, int i, bool swapped, bool packed) {
  const Axis* inner = &axes[i];
  Dim columns = inner->extent;
  bool joins = !is_zero(inner->out);
  while (joins) {
    joins = false;
    for (const Axis& outer : axes) {
      const Dim &a = swapped ? outer.b : outer.a, &b = swapped ? outer.a : outer.b;
      const Dim &inner_a = swapped ? inner->b : inner->a, &inner_b = swapped ? inner->a : inner->b;
      if (outer.reduction || &outer == inner || !is_zero(a) || !is_zero(inner_a) || is_zero(b)) continue;
      if (!(outer.out == inner->out * inner->extent) || (!packed && !(b == inner_b * inner->extent)))
        continue;
      columns *= outer.extent;
      inner = &outer;
      joins = true;
      break;
    }
  }
  return size_of(columns);
}

// Estimated cost of running vectors along output axis `i`, in units of vector multiply-adds.
std::vector<Candidate> candidates(const std::vector<Axis>& axes, int i, const OperandStrides& x,
                                  const OperandStrides& y, int lanes, DType accumulator,
                                  const Target& target) {
  const Axis& v = axes[i];
  bool bytes = is_byte(x.dtype) && is_byte(y.dtype) && accumulator == DType::kI32;
  double total = 1, operand_x = 1, operand_y = 1, reduction = 1;
  for (const Axis& axis : axes) {
    double extent = size_of(axis.extent);
    total *= extent;
    if (!is_zero(axis.a)) operand_x *= extent;
    if (!is_zero(axis.b)) operand_y *= extent;
    if (axis.reduction) reduction *= extent;
  }
  double stores = total / reduction;
  std::vector<Candidate> result;
  for (bool swapped : {false, true}) {
    // b is the vector operand: y, or x when swapped. In `axes`, a is x and b is y.
    const Dim &a_stride = swapped ? v.b : v.a, &b_stride = swapped ? v.a : v.b;
    const OperandStrides& b = swapped ? x : y;
    const OperandStrides& a = swapped ? y : x;
    double columns = joined_columns(axes, i, swapped, b.constant);
    double vectors = std::ceil(columns / lanes) / columns * total;
    auto is_row = [&](const Axis& axis) {
      return !axis.reduction && &axis != &v && is_zero(swapped ? axis.a : axis.b);
    };
    bool has_rows = std::any_of(axes.begin(), axes.end(), is_row);
    // A window that slides over images of few channels, for rows of output channels: b is put together.
    bool needs_staging = !is_one(b_stride) || !b.guards.empty();
    if (has_rows && !b.constant && !is_zero(b_stride) && is_zero(a_stride) && is_one(v.out) &&
        a.guards.empty() && needs_staging) {
      std::vector<int> lines;
      for (size_t r = 0; r < axes.size(); ++r)
        if (!axes[r].reduction && &axes[r] != &v && !is_row(axes[r])) lines.push_back(static_cast<int>(r));
      if (stage_image(axes, i, lines, b, 1, target)) {
        result.push_back({i, swapped, false, false, -1, 1.05 * vectors});
        continue;
      }
    }
    if (!b.guards.empty()) continue;
    if (is_zero(b_stride)) {
      // A window that slides over each image by itself: a is read in vectors, b is one element for them all.
      bool slides = !a.constant && has_rows && std::all_of(axes.begin(), axes.end(), [&](const Axis& axis) {
        return axis.reduction || is_zero(swapped ? axis.a : axis.b) || !is_zero(swapped ? axis.b : axis.a);
      });
      if (slides && (!is_one(a_stride) || !a.guards.empty())) {
        std::vector<int> rows;
        for (size_t r = 0; r < axes.size(); ++r)
          if (is_row(axes[r])) rows.push_back(static_cast<int>(r));
        std::optional<ContractionPlan::Image> image = stage_image(axes, i, rows, a, kMostTileRows, target);
        slides = image && image->planes.empty();
      }
      if (slides)
        result.push_back({i, swapped, true, false, -1, 1.2 * vectors + (is_one(v.out) ? 0 : 2 * stores)});
      continue;
    }
    if (!a.guards.empty()) {
      std::vector<int> rows;
      for (size_t r = 0; r < axes.size(); ++r)
        if (is_row(axes[r])) rows.push_back(static_cast<int>(r));
      if (!is_one(a_stride) || !slides_in_place(axes, rows, a, target)) continue;
    }
    Candidate c{i, swapped, !is_zero(a_stride), b.constant, -1, vectors};
    if (c.elementwise || !has_rows) c.cost *= 1.5;  // a load for each multiply-add
    if (bytes && c.packed && !c.elementwise && std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
          return axis.reduction && is_one(swapped ? axis.b : axis.a);
        }))
      c.cost *= has_dots(target) ? 0.25 : 0.5;  // four products at a time
    if (c.elementwise && !is_one(a_stride)) {
      if (a.constant && !b.constant) continue;  // the other order packs it
      if (!a.copyable[v.members.front()]) continue;
      c.copy_operand = swapped ? 1 : 0;
      c.cost += 3 * (swapped ? operand_y : operand_x) / 4;
    }
    if (!b.constant && !is_one(b_stride)) {
      if (c.copy_operand >= 0 || !b.copyable[v.members.front()]) continue;
      c.copy_operand = swapped ? 0 : 1;
      c.cost += 3 * (swapped ? operand_x : operand_y) / 4;
    }
    bool turns = !target.is_gpu() && lanes > 1 && std::any_of(axes.begin(), axes.end(), [&](const Axis& r) {
      return is_row(r) && is_one(r.out);
    });
    if (!is_one(v.out)) c.cost += (turns ? kTurned : 2) * stores;  // scattered stores
    result.push_back(c);
  }
  return result;
}

// Merges neighbours of `order` (outermost first) into one axis where `contiguous` says that the strides allow
// it.
template <class Contiguous>
void coalesce(std::vector<Axis>& axes, std::vector<int>& order, const Contiguous& contiguous) {
  std::vector<int> result;
  for (int i : order) {
    if (!result.empty() && contiguous(axes[result.back()], axes[i])) {
      Axis& outer = axes[result.back()];
      const Axis& inner = axes[i];
      outer.extent *= inner.extent;
      outer.a = inner.a;
      outer.b = inner.b;
      outer.out = inner.out;
      outer.name += "." + inner.name;
      outer.members.insert(outer.members.end(), inner.members.begin(), inner.members.end());
      axes[i].extent = 0;  // gone
    } else {
      result.push_back(i);
    }
  }
  order = std::move(result);
}

// Whether tiles of `v` vectors walk panels of `panel_v`, for that many vectors in all, without leaving them.
bool fits_panels(int v, int panel_v, double vectors) {
  if (panel_v % v == 0) return true;
  return v % panel_v == 0 && std::ceil(vectors / v) * v <= std::ceil(vectors / panel_v) * panel_v;
}

constexpr int kDotWidth = 4;
constexpr int kMostRowPointers = 10;   // that stay in registers
constexpr int kMostRowsCounted = 256;  // of which the last tile's matter to an estimate
// Of a tile whose rows share elements; more were up to 1.1 times slower on Zen 4.
constexpr int kMostRowsOfWindows = 10;

// Instructions of a sum of four products of bytes: one, or what pairs of 16-bit elements take.
double dot_instructions(const ContractionPlan& plan, const Target& target) {
  return plan.dot == 1 || has_dots(target) ? 1 : 4;
}

constexpr int64_t kCacheLine = 64, kNearWays = 8;  // of the nearest cache

// Lines at that distance, in bytes, which the nearest cache holds at a time: a power of two leads to few of
// its sets.
int64_t lines_held(const Target& target, int64_t distance) {
  int64_t way = std::max(target.l1_bytes / kNearWays, kCacheLine);
  return way / std::max(std::gcd(way, distance), kCacheLine) * kNearWays;
}

// How much longer a tile takes whose rows of a are streams along the sum, more of them than the nearest cache
// holds lines at their distance. Measured on Zen 4 with sums of 1024 steps: 10, 12, 13 and 14
// rows 1.02, 1.12, 1.2, 1.3.
double crowding(const ContractionPlan& plan, const Target& target, int m) {
  constexpr double kOfSquare = 0.008;
  if (plan.elementwise || plan.row_axes.empty() || plan.reduction_axes.empty() || target.is_gpu() ||
      target.firmware)
    return 1;
  const Dim& row = plan.axes[plan.row_axes.back()].a;
  if (!is_one(plan.axes[plan.reduction_axes.back()].a) || !row.is_const() || row.value() <= 0) return 1;
  int64_t distance = row.value() * target.vector_bytes / plan.lanes / plan.dot;
  double beyond = std::max<double>(0, static_cast<double>(m - lines_held(target, distance)));
  return 1 + kOfSquare * beyond * beyond;
}

// Whether the rows of a tile lie at one distance from each other in a, wherever the tile lies (the last one
// aside).
bool rows_are_even(const ContractionPlan& plan, int m) {
  if (plan.row_axes.size() < 2) return true;
  const Dim& last = plan.axes[plan.row_axes.back()].extent;
  return last.is_const() && last.value() % m == 0;
}

// Cycles of one step of a register tile's sum. Several limits lie close together and none is reached while
// another is near, which a norm of high order says (fitted to tiles from 2x6 to 12x1 on Zen 5, within 4 %):
// multiply-adds, loads, their latency, and, where a panel outgrows the nearest cache, what comes from the
// second one.
// `v`: where the last vector is a short one, it counts as a part of one.
double step_cycles(const ContractionPlan& plan, const Target& target, int m, double v, double steps) {
  constexpr double kLatency = 4, kOrder = 8, kL2BytesPerCycle = 48;
  double multiply_adds = m * v * dot_instructions(plan, target) / target.peak_fma_per_cycle;
  double loads = plan.elementwise ? m * std::ceil(v) + std::ceil(v) : m + std::ceil(v);
  // The loop takes three instructions; rows of a further apart than an offset reaches take one each.
  if (target.single_issue) return multiply_adds + loads + m / 2.0 + 3;
  // Rows at no fixed distance have a pointer each; more of them than there are registers are loaded, too.
  if (!plan.elementwise && !target.is_gpu() && m > kMostRowPointers && !rows_are_even(plan, m)) loads += m;
  loads /= 2;
  double element = static_cast<double>(target.vector_bytes) / plan.lanes;
  double bytes = (v * plan.lanes + m) * element;
  bool near = bytes * steps <= static_cast<double>(target.l1_bytes) / 2;
  double sum = 0;
  for (double limit :
       {multiply_adds, loads, kLatency, near || plan.elementwise ? 0 : bytes / kL2BytesPerCycle})
    sum += std::pow(limit, kOrder);
  return std::pow(sum, 1 / kOrder) * crowding(plan, target, m);
}

// What the unrolled steps of a depthwise tile take longer where there are too few registers for what they
// could share of a: rows along a window's last axis share its vectors from one element of the window to the
// next; rows along another axis share those of three elements from one row of the window to the next, a
// vector of columns at a time. Measured on Zen 4: 1.12 to 1.27, and 1.2 to 1.7.
double spills(const ContractionPlan& plan, const Target& target, int m, int v, double steps) {
  if (!plan.elementwise || steps > kUnrolledSteps) return 1;
  bool slides = is_zero(plan.axes[plan.vector_axis].b);
  if (slides) return m * v + 3 * (m + 2) > target.vector_registers + 4 ? 1.5 : 1;
  return 2 * m * v + v + 2 > target.vector_registers ? 1.2 : 1;
}

// Whether the lines of a vector's columns that a row of windows sees push one another out of the nearest
// cache, for they lie at a distance that leads to few of its sets, as 256 or 512 channels do.
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
  constexpr double kLatency = 4, kOrder = 8, kTile = 4, kLineBytes = 64, kL2BytesPerCycle = 24,
                   kSpilled = 0.1;
  const Slide& along = *windows_along_rows(plan);
  double window = size_of(plan.axes[along.window].extent), passes = steps / window, v = std::ceil(vectors);
  double seen = std::min((m - 1.0) * along.step, (m - 1) * window) + window;  // elements, in each pass
  double multiply_adds = m * vectors * steps * dot_instructions(plan, target) / target.peak_fma_per_cycle;
  double loads = (seen + window) * v * passes / 2;
  // A line comes from the second-level cache for each pass, or once where the next row of results finds it
  // near.
  double down = 1;
  for (const Slide& s : plan.windows)
    if (&s != &along) down *= static_cast<double>(s.step);
  double read = order == TileOrder::kRows ? down * static_cast<double>(along.step) * m : passes * seen;
  double element = static_cast<double>(target.vector_bytes) / plan.lanes;
  double width = size_of(plan.axes[plan.vector_axis].extent) * element;
  double run = std::ceil(vectors * plan.lanes * element / kLineBytes) * kLineBytes;
  if (std::fmod(width, kLineBytes) != 0) run += kLineBytes / 2;
  if (lines_conflict(plan, target)) run += kLineBytes;
  double sum = 0;
  for (double limit : {multiply_adds, loads, kLatency * steps, read * run / kL2BytesPerCycle})
    sum += std::pow(limit, kOrder);
  double registers = m * v + (window + 1) * v, spilled = std::max(0.0, registers - target.vector_registers);
  return std::pow(sum, 1 / kOrder) * (1 + kSpilled * spilled) + kTile + 2.0 * m * vectors;
}

// Registers of the target that a tile can have.
int tile_registers(const ContractionPlan& plan, const Target& target) {
  bool scalars = plan.integers && target.integer_registers != 0;
  return scalars ? target.integer_registers : target.vector_registers;
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
             2 * target.barrier_multiply_adds / plan.shared_steps;
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
  constexpr int64_t kWidest = 8;  // bytes of an element
  int64_t shared = shares_rows(plan) ? plan.shared_steps * shared_pitch(plan) * kWidest : 0;
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
  if (turns_tiles(plan, target)) {  // a power of two of rows at a time, however many there are
    int at_once = std::min(plan.lanes, static_cast<int>(std::bit_ceil(static_cast<unsigned>(m))));
    turned = kTurned * plan.lanes * ((m + at_once - 1) / at_once * at_once) * vectors;
  }
  return steps * step + 12 + 2.0 * m * vectors + turned;
}

struct Estimate {
  Tiling tiling;
  double cycles;  // of a grid point
};

// Of the cycles of a whole vector: half where the processor computes a wide one in two halves, else all.
constexpr double kShortVector = 0.75;

// Where each step of a sum reads a on another line, the larger operand passes once: all of a for each tile's
// columns, or all of packed b for its rows. It matters where a outgrows half of the second-level cache.
// Rows of a that lie together along the sum come as streams, and are as fast to read again (measured on Zen
// 5).
TileOrder tile_order(const ContractionPlan& plan, const Target& target) {
  constexpr double kLineBytes = 64;
  // Elementwise a has columns of its own, and is so read in order; but where it is near, a tile's columns of
  // the rows that windows share should stay in the nearest cache.
  if (plan.elementwise) {
    double a = static_cast<double>(target.vector_bytes) / plan.lanes;
    for (const Axis& axis : plan.axes)
      if (!axis.reduction && !is_zero(axis.a)) a *= size_of(axis.extent);
    for (const Slide& s : plan.windows) a *= static_cast<double>(s.step);
    bool near = a <= 3 * static_cast<double>(target.l2_bytes);
    bool stays = windows_along_rows(plan) && near && !lines_conflict(plan, target);
    return stays ? TileOrder::kRows : TileOrder::kColumns;
  }
  if (!plan.packed || plan.reduction_axes.empty() || target.is_gpu() || target.firmware)
    return TileOrder::kRows;
  auto span = [&](int i) { return (size_of(plan.axes[i].extent) - 1) * std::abs(size_of(plan.axes[i].a)); };
  double a = 1;  // between its first and last element, gaps of a strided image included
  for (int i : plan.row_axes) a += span(i);
  for (int i : plan.reduction_axes) a += span(i);
  double b = size_of(reduction_count(plan)) * size_of(plan.axes[plan.vector_axis].extent);
  double element = static_cast<double>(target.vector_bytes) / plan.lanes / plan.dot;
  bool scattered = std::abs(size_of(plan.axes[plan.reduction_axes.back()].a)) * element >= kLineBytes;
  bool outgrows = a * element > static_cast<double>(target.l2_bytes) / 2;
  return scattered && outgrows && a > b ? TileOrder::kColumns : TileOrder::kRows;
}

// All tiles, the chosen one first, then by estimated cycles.
std::vector<Estimate> estimates(ContractionPlan plan, const Target& target, int panel_v) {
  double rows = size_of(product(plan.axes, plan.row_axes));
  double columns = plan.vector_axis >= 0 ? size_of(plan.axes[plan.vector_axis].extent) : 1;
  double steps = size_of(panel_rows(plan)), grid = size_of(product(plan.axes, plan.grid_axes));
  bool halves = dot_instructions(plan, target) > 1;  // even and odd bytes, each in a register
  std::vector<Estimate> result;
  size_t best = 0;
  TileOrder order = tile_order(plan, target);
  for (int v : {1, 2, 3, 4, 6, 8}) {
    if (plan.packed && panel_v != 0 && !fits_panels(v, panel_v, std::ceil(columns / plan.lanes))) continue;
    for (int m : tile_heights(target)) {
      if (m > rows && m > 1) break;
      plan.tile_v = v, plan.tile_m = m;
      if (target.is_gpu() && !fits_workgroup(plan, target)) break;
      int extra = plan.elementwise ? v + 2 : halves ? 2 * v + 4 : v + 1;
      if (m * v + extra > tile_registers(plan, target) && !(m == 1 && v == 1)) break;
      double tiles = std::ceil(columns / static_cast<double>(plan.tile_n()));
      std::optional<TileVectors> rest = rest_of_columns(plan, target);
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
      // The last tile has code of its own, but not on GPUs, in firmware, and where rows come in blocks: of
      // staged images, and of products of activations, which attention takes. Of many rows it weighs less
      // than what the estimates are wrong by.
      int left = static_cast<int>(std::fmod(rows, m));
      bool own_code = !target.is_gpu() && !target.firmware && plan.packed && row_count(plan).is_const() &&
                      rows <= kMostRowsCounted;
      if (left != 0 && !own_code) left = m;
      double cycles = std::floor(rows / m) * row_of_tiles(m) + (left != 0 ? row_of_tiles(left) : 0);
      if (target.local_memory) cycles *= idle_share(plan, target, grid * tiles * std::ceil(rows / m));
      result.push_back({{.rows = m, .columns = int64_t{v} * plan.lanes, .order = order}, cycles});
      if (cycles < result[best].cycles * 0.999) best = result.size() - 1;
    }
  }
  std::swap(result[0], result[best]);
  std::stable_sort(result.begin() + 1, result.end(),
                   [](const Estimate& a, const Estimate& b) { return a.cycles < b.cycles; });
  return result;
}

// Steps of a sum that a workgroup fetches at a time: lanes take neighbours along its last axis.
int shared_steps(const ContractionPlan& plan, const Target& target) {
  constexpr int kSteps = 16;
  constexpr int64_t kFewestSteps = 8;  // fewer are not worth the barriers
  if (!target.local_memory || plan.elementwise || plan.dot > 1 || plan.staged || plan.reduction_axes.empty())
    return 0;
  bool enough = plan.axes[plan.reduction_axes.back()].extent.estimate() >= kFewestSteps;
  return enough && plan.lanes % kSteps == 0 ? kSteps : 0;
}

void choose_tile(ContractionPlan& plan, const Target& target, int panel_v) {
  Estimate best = estimates(plan, target, panel_v)[0];
  set_tiling(plan, best.tiling, panel_v);
  plan.reason = "estimated " + std::to_string(static_cast<int64_t>(best.cycles)) + " cycles per grid point";
}

// Sums of products of bytes take four at a time where the bytes of "a" lie together; the order of a sum of
// integers is free.
void choose_dot(ContractionPlan& plan, DType a, DType b, DType accumulator, const Target& target) {
  if (!plan.packed || plan.elementwise || !is_byte(a) || !is_byte(b) || accumulator != DType::kI32) return;
  std::vector<int>& order = plan.reduction_axes;
  auto last = std::find_if(order.rbegin(), order.rend(), [&](int i) { return is_one(plan.axes[i].a); });
  if (last == order.rend()) return;
  std::rotate(last.base() - 1, last.base(), order.end());
  plan.dot = kDotWidth;
  bool a_signed = a == DType::kI8, b_signed = b == DType::kI8;
  if (!target.has_dot(a_signed, b_signed) && target.has_dot(!a_signed, b_signed))
    plan.dot_shift = a_signed ? 128 : -128;
}

}  // namespace

OperandStrides operand_strides(const Graph& graph, const OperandAccess& access, const Shape& dim_strides,
                               const Dim& offset, size_t axes) {
  OperandStrides result;
  result.axis.assign(axes, 0);
  result.offset = offset;
  result.constant = graph.constant(access.base) != nullptr;
  result.dtype = graph.dtype(access.base);
  for (size_t d = 0; d < access.indices.size(); ++d) {
    AffineForm form = *as_affine(access.indices[d], static_cast<int>(axes));
    result.offset += form.offset * dim_strides[d];
    for (size_t i = 0; i < axes; ++i) result.axis[i] += form.coefficients[i] * dim_strides[d];
  }
  result.copyable.assign(axes, 0);
  for (size_t i = 0; i < axes; ++i) {
    int dims = 0;
    bool unit = false;
    for (const IndexExpr& e : access.indices)
      if (uses_axis(e, static_cast<int>(i)))
        ++dims, unit = is_one(as_affine(e, static_cast<int>(axes))->coefficients[i]);
    result.copyable[i] = dims == 1 && unit;
  }
  result.dim.assign(axes, -1);
  result.step.assign(axes, 0);
  for (size_t d = 0; d < access.indices.size(); ++d) {
    AffineForm form = *as_affine(access.indices[d], static_cast<int>(axes));
    for (size_t i = 0; i < axes; ++i) {
      if (is_zero(form.coefficients[i])) continue;
      result.dim[i] = result.dim[i] == -1 ? static_cast<int>(d) : -2;
      result.step[i] = form.coefficients[i];
    }
  }
  result.dim_strides = dim_strides;
  result.guards = access.guards;
  return result;
}

ContractionPlan plan_contraction(const Contraction& contraction, const OperandStrides& given_x,
                                 const OperandStrides& given_y, const Target& target,
                                 const PlanOptions& options) {
  ContractionPlan plan;
  size_t count = contraction.axes.size();
  OperandStrides x = given_x, y = given_y;
  for (const Contraction::Axis& axis : contraction.axes)
    if (axis.reduction && !axis.extent.is_const()) x.constant = y.constant = false;  // nothing to pack for
  Shape out_dims(contraction.out.size(), 1), extents(count);
  for (size_t i = 0; i < count; ++i) extents[i] = contraction.axes[i].extent;
  for (size_t d = 0; d < contraction.out.size(); ++d)
    out_dims[d] = range_of(contraction.out[d], extents).hi + 1;
  Shape dim_strides = contiguous_strides(out_dims), out_strides(count, 0);
  for (size_t d = 0; d < contraction.out.size(); ++d) {
    AffineForm form = *as_affine(contraction.out[d], static_cast<int>(count));
    for (size_t i = 0; i < count; ++i) out_strides[i] += form.coefficients[i] * dim_strides[d];
  }
  for (size_t i = 0; i < count; ++i) {
    if (is_one(extents[i])) continue;
    plan.axes.push_back({contraction.axes[i].name,
                         extents[i],
                         contraction.axes[i].reduction,
                         x.axis[i],
                         y.axis[i],
                         out_strides[i],
                         {static_cast<int>(i)}});
  }
  plan.member_extents = extents;
  std::vector<Axis>& axes = plan.axes;
  plan.lanes = target.lanes(element_size(contraction.accumulator));

  Candidate best;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].reduction) continue;
    for (const Candidate& c :
         candidates(axes, static_cast<int>(i), x, y, plan.lanes, contraction.accumulator, target))
      if ((options.may_copy || c.copy_operand < 0) && (best.axis < 0 || c.cost < best.cost)) best = c;
  }
  plan.vector_axis = best.axis;
  plan.swapped = best.swapped;
  plan.elementwise = best.elementwise;
  plan.copy_operand = best.copy_operand;
  if (best.axis < 0) plan.lanes = 1;
  plan.packed = best.axis >= 0 && best.packed;
  if (plan.swapped)
    for (Axis& axis : axes) std::swap(axis.a, axis.b);
  plan.a_offset = plan.swapped ? y.offset : x.offset;
  plan.b_offset = plan.swapped ? x.offset : y.offset;
  plan.member_b_strides = plan.swapped ? x.axis : y.axis;

  std::vector<int> outputs;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].reduction)
      plan.reduction_axes.push_back(static_cast<int>(i));
    else if (static_cast<int>(i) != plan.vector_axis)
      outputs.push_back(static_cast<int>(i));
  }
  auto by_out = [&](int i, int j) { return axes[i].out.estimate() > axes[j].out.estimate(); };
  std::stable_sort(outputs.begin(), outputs.end(), by_out);
  for (int i : outputs) (is_zero(axes[i].b) ? plan.row_axes : plan.grid_axes).push_back(i);
  if (plan.elementwise && is_zero(axes[plan.vector_axis].b)) {
    const OperandStrides& a = plan.swapped ? y : x;
    if (!is_one(axes[plan.vector_axis].a) || !a.guards.empty())
      plan.staged = stage_image(axes, plan.vector_axis, plan.row_axes, a, kMostTileRows, target);
    // Images of few columns: shorter vectors are never slower, and often several are computed at a time.
    if (!target.is_gpu())
      while (plan.lanes >= 8 && axes[plan.vector_axis].extent.is_const() &&
             axes[plan.vector_axis].extent.value() * 2 <= plan.lanes)
        plan.lanes /= 2;
  }

  if (plan.vector_axis >= 0 && !plan.elementwise && !plan.packed && plan.copy_operand < 0) {
    const OperandStrides& b = plan.swapped ? x : y;
    if (!is_one(axes[plan.vector_axis].b) || !b.guards.empty())
      plan.staged = stage_image(axes, plan.vector_axis, plan.grid_axes, b, 1, target);
  }

  if (plan.elementwise && !is_zero(axes[plan.vector_axis].b))
    if (auto slides = slides_in_place(axes, plan.row_axes, plan.swapped ? y : x, target))
      plan.windows = *std::move(slides);
  bool windows_apart = plan.staged || !plan.windows.empty();  // their axes are those of the operand's dims

  // Columns that "a" does not see join the vector axis.
  auto fits_b = [&](const Axis& outer, const Axis& inner) {
    return plan.packed || outer.b == inner.b * inner.extent;
  };
  auto fits_a = [](const Axis& outer, const Axis& inner) { return outer.a == inner.a * inner.extent; };
  auto fits_out = [](const Axis& outer, const Axis& inner) { return outer.out == inner.out * inner.extent; };
  if (plan.vector_axis >= 0 && !windows_apart) {
    while (!plan.grid_axes.empty()) {
      int outer = plan.grid_axes.back();
      if (!fits_a(axes[outer], axes[plan.vector_axis]) || !fits_b(axes[outer], axes[plan.vector_axis]) ||
          !fits_out(axes[outer], axes[plan.vector_axis]))
        break;
      std::vector<int> pair{outer, plan.vector_axis};
      coalesce(axes, pair, [](const Axis&, const Axis&) { return true; });
      plan.vector_axis = outer;
      plan.grid_axes.pop_back();
    }
  }
  plan.integers = is_integer(contraction.accumulator);
  choose_dot(plan, plan.swapped ? y.dtype : x.dtype, plan.swapped ? x.dtype : y.dtype,
             contraction.accumulator, target);
  if (!windows_apart) {
    coalesce(axes, plan.reduction_axes,
             [&](const Axis& o, const Axis& i) { return fits_a(o, i) && fits_b(o, i); });
    coalesce(axes, plan.row_axes,
             [&](const Axis& o, const Axis& i) { return fits_a(o, i) && fits_out(o, i); });
  }
  // Rows of a depthwise kernel walk one axis, so that neighbours share their loads.
  if (plan.elementwise)
    while (plan.row_axes.size() > 1) {
      plan.grid_axes.push_back(plan.row_axes.front());
      plan.row_axes.erase(plan.row_axes.begin());
    }
  plan.shared_steps = shared_steps(plan, target);
  choose_tile(plan, target, options.panel_v);

  // The contraction's axes in terms of the merged ones: digits of a mixed radix number.
  plan.axis_values.assign(count, IndexExpr(0));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (is_zero(axes[i].extent)) continue;
    Dim radix = 1;
    for (size_t m = axes[i].members.size(); m-- > 0;) {
      int member = axes[i].members[m];
      IndexExpr digit = floordiv(IndexExpr::axis(static_cast<int>(i)), radix);
      plan.axis_values[member] = m == 0 ? digit : floormod(digit, extents[member]);
      radix *= extents[member];
    }
  }
  return plan;
}

const Slide* windows_along_rows(const ContractionPlan& plan) {
  for (const Slide& s : plan.windows)
    if (s.position == plan.row_axes.back()) return &s;
  return nullptr;
}

std::vector<Tiling> tilings(const ContractionPlan& plan, const Target& target, int panel_v) {
  std::vector<Tiling> result;
  for (const Estimate& e : estimates(plan, target, panel_v)) result.push_back(e.tiling);
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

Tiling tiling_of(const ContractionPlan& plan) {
  return {.rows = plan.tile_m, .columns = plan.tile_n(), .order = plan.order, .group_work = plan.group_work};
}

void set_tiling(ContractionPlan& plan, const Tiling& tiling, int panel_v) {
  plan.tile_m = static_cast<int>(tiling.rows);
  plan.tile_v = static_cast<int>(tiling.columns / plan.lanes);
  plan.order = tiling.order;
  plan.group_work = tiling.group_work;
  double columns = plan.vector_axis >= 0 ? size_of(plan.axes[plan.vector_axis].extent) : 1;
  bool fits = panel_v != 0 && fits_panels(plan.tile_v, panel_v, std::ceil(columns / plan.lanes));
  plan.panel_v = fits ? panel_v : plan.tile_v;
}

bool shares_rows(const ContractionPlan& plan) {
  constexpr int kFewestRows = 4;  // fewer are not worth the barriers
  return plan.shared_steps != 0 && plan.tile_m >= kFewestRows;
}

int64_t shared_pitch(const ContractionPlan& plan) {
  constexpr int64_t kGap = 4;
  int64_t fetched = plan.lanes / plan.shared_steps;
  return (plan.tile_m + fetched - 1) / fetched * fetched + kGap;
}

Dim row_count(const ContractionPlan& plan) { return product(plan.axes, plan.row_axes); }
Dim reduction_count(const ContractionPlan& plan) { return product(plan.axes, plan.reduction_axes); }
static Dim column_count(const ContractionPlan& plan) {
  return plan.vector_axis >= 0 ? plan.axes[plan.vector_axis].extent : Dim(1);
}
Dim panel_rows(const ContractionPlan& plan) {
  Dim rows = 1;
  for (size_t i = 0; i < plan.reduction_axes.size(); ++i) {
    const Dim& extent = plan.axes[plan.reduction_axes[i]].extent;
    rows *= plan.dot > 1 && i + 1 == plan.reduction_axes.size() ? ceildiv(extent, plan.dot) : extent;
  }
  return plan.dot_shift != 0 ? rows + 1 : rows;
}
Dim panel_count(const ContractionPlan& plan) { return ceildiv(column_count(plan), plan.panel_n()); }
Dim column_tile_count(const ContractionPlan& plan) { return ceildiv(column_count(plan), plan.tile_n()); }

bool turns_tiles(const ContractionPlan& plan, const Target& target) {
  constexpr int kFewestLanes = 4;
  if (target.is_gpu() || target.firmware || plan.vector_axis < 0 || plan.lanes < kFewestLanes ||
      !std::has_single_bit(static_cast<unsigned>(plan.lanes)) || is_one(plan.axes[plan.vector_axis].out))
    return false;
  Dim stride = 1;
  for (size_t i = plan.row_axes.size(); i-- > 0;) {
    const Axis& axis = plan.axes[plan.row_axes[i]];
    if (!(axis.out == stride)) return false;
    stride *= axis.extent;
  }
  return plan.tile_m > 1 && !plan.row_axes.empty();
}

std::optional<TileVectors> rest_of_columns(const ContractionPlan& plan, const Target& target) {
  constexpr int64_t kFewestLanes = 4;
  Dim columns = column_count(plan);
  if (target.is_gpu() || plan.vector_axis < 0 || !columns.is_const()) return std::nullopt;
  int64_t left = columns.value() % plan.tile_n(), beyond = left % plan.lanes, lanes = plan.lanes;
  if (left == 0 || (target.firmware && columns.value() > left)) return std::nullopt;
  while (lanes / 2 >= std::max(beyond, kFewestLanes)) lanes /= 2;
  TileVectors rest{.vectors = static_cast<int>(left / plan.lanes)};
  if (beyond != 0 && lanes < plan.lanes)
    rest.short_lanes = static_cast<int>(lanes);
  else if (beyond != 0)
    ++rest.vectors;
  return rest.short_lanes == 0 && rest.vectors == plan.tile_v ? std::nullopt : std::optional(rest);
}

}  // namespace quernel::schedule
