// Tiling of contractions: which axis runs in vectors and which in rows, and the register tile of the fewest
// estimated cycles.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "schedule/contraction/plan_contraction.h"
#include "schedule/contraction/sliding_windows.h"
#include "schedule/contraction/tile_estimates.h"

namespace quernel::schedule {

namespace {

bool has_dots_of_words(const Target& target) { return target.has_dot_u8_s8 || target.has_dot_s8_s8; }

}  // namespace

int64_t words_in_halves(const Target& target, int bits) {
  constexpr int64_t kLargestHalf = 32767, kLargestByte = 128, kProducts = 2;
  if (!target.has_dot_halves || has_dots_of_words(target)) return 0;
  return kLargestHalf / (kProducts * kLargestByte * ((int64_t{1} << bits) - 1));
}

bool multiplies_bytes(const Target& target, int bits) {
  return !target.lanes_are_invocations() && (has_dots_of_words(target) || words_in_halves(target, bits) > 0);
}

int64_t middle_of_bytes(const Target& target, int bits) {
  // NEON, which has dot products by words, moves bits into the highest ones of bytes by a single instruction; others only
  // lower ones.
  const bool are_signed = !target.lanes_are_invocations() && target.has_dot_s8_s8 &&
                          (target.has_dot_words || !target.has_dot_u8_s8);
  return are_signed ? 0 : int64_t{1} << (bits - 1);
}

int dot_width(DType a, DType b, DType accumulator, const Target& target) {
  // Scalars without an instruction for it would take a word apart byte by byte, and can as well load bytes.
  const bool in_words = has_dots(target) || target.has_dot_pairs || !target.loads_signed_bytes;
  if (is_byte(a) && is_byte(b) && accumulator == DType::kI32) return in_words ? 4 : 1;
  return a == DType::kBF16 && b == a && target.has_dot_bf16 && accumulator == DType::kF32 ? 2 : 1;
}

namespace {

using Axis = ContractionPlan::Axis;

// Vector instructions that reads along one axis need: contiguous and packed operands come in whole vectors.
struct Candidate {
  int axis = -1;
  bool swapped = false, elementwise = false, packed = false;
  int copy_operand = -1;
  double cost = 0;
};

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
  int dot = dot_width(x.dtype, y.dtype, accumulator, target);
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
    // Quantised constants are packed, and read in vectors.
    if (a.quantized || (b.quantized && (is_zero(b_stride) || !is_zero(a_stride)))) continue;
    double columns = joined_columns(axes, i, swapped, b.constant);
    double vectors = std::ceil(columns / lanes) / columns * total;
    auto is_row = [&](const Axis& axis) {
      return !axis.reduction && &axis != &v && is_zero(swapped ? axis.a : axis.b);
    };
    std::vector<int> rows;
    for (size_t r = 0; r < axes.size(); ++r)
      if (is_row(axes[r])) rows.push_back(static_cast<int>(r));
    bool has_rows = !rows.empty();
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
        std::optional<ContractionPlan::Image> image = stage_image(axes, i, rows, a, kMostTileRows, target);
        slides = image && image->planes.empty();
      }
      if (slides)
        result.push_back({i, swapped, true, false, -1, 1.2 * vectors + (is_one(v.out) ? 0 : 2 * stores)});
      continue;
    }
    if (!a.guards.empty()) {
      if (!is_one(a_stride) || !slides_in_place(axes, rows, a, target)) continue;
    }
    Candidate c{i, swapped, !is_zero(a_stride), b.constant, -1, vectors};
    if (c.elementwise || !has_rows) c.cost *= 1.5;  // a load for each multiply-add
    if (dot > 1 && c.packed && !c.elementwise && std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) {
          return axis.reduction && is_one(swapped ? axis.b : axis.a);
        }))
      c.cost *= has_dots(target) ? 1.0 / dot : 0.5;  // so many products at a time
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
    bool turns =
        !target.lanes_are_invocations() && lanes > 1 &&
        std::any_of(axes.begin(), axes.end(), [&](const Axis& r) { return is_row(r) && is_one(r.out); });
    if (!is_one(v.out)) c.cost += (turns ? kTranspose : 2) * stores;  // scattered stores
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

// Whether matrix units sum the products: of enough rows and columns for their tiles, in whole fetches of steps. Bytes may
// end within a fetch, for zeros of b fill it up, of which there are not too many.
bool multiplies_matrices(const ContractionPlan& plan, DType a, DType b, DType accumulator,
                         const Target& target) {
  constexpr int64_t kFewestRows = 16, kFewestColumns = 32;
  constexpr int64_t kMostParts = 4;  // the fewest zeros for a step that are too many: one for three
  const int64_t steps = target.matrix_steps(b);
  if (steps == 0 || !plan.packed || plan.elementwise || plan.staged || plan.reduction_axes.empty() ||
      !(a == b || (is_byte(a) && is_byte(b))) || accumulator != (is_byte(b) ? DType::kI32 : DType::kF32) ||
      plan.lanes != Target::kMatrixSide)
    return false;
  const Dim& extent = plan.axes[plan.reduction_axes.back()].extent;
  const bool whole = floormod(extent, steps) == Dim(0);
  const bool filled =
      is_byte(b) && extent.is_const() &&
      ceildiv(extent, steps).value() * steps * (kMostParts - 1) <= extent.value() * kMostParts;
  return (whole || filled) && row_count(plan).estimate() >= kFewestRows &&
         plan.axes[plan.vector_axis].extent.estimate() >= kFewestColumns;
}

// Whether a kernel can bind b in one piece, with the zeros that fill up sums of bytes and what cancels a shift.
bool binds_bytes(const ContractionPlan& plan) {
  int64_t bytes =
      panel_count(plan).estimate() * panel_rows(plan).estimate() * plan.panel_n() * int64_t{plan.dot};
  for (int axis : plan.grid_axes)
    if (!is_zero(plan.axes[axis].b)) bytes *= plan.axes[axis].extent.estimate();
  return bytes <= Target::kBindingBytes;
}

// Matrix units take the place of int8 dot products. They multiply bytes of equal signs.
void choose_matrices(ContractionPlan& plan, DType a, DType b, DType accumulator, const Target& target) {
  plan.matrices = multiplies_matrices(plan, a, b, accumulator, target);
  if (!plan.matrices || !is_byte(b)) return;
  const int dot = std::exchange(plan.dot, target.matrix_steps(b));
  const int dot_shift = std::exchange(plan.dot_shift, a == b ? 0 : a == DType::kI8 ? 128 : -128);
  if (binds_bytes(plan)) return;
  plan.matrices = false;
  plan.dot = dot;
  plan.dot_shift = dot_shift;
}

// Steps of a sum that a workgroup fetches at a time: lanes take neighbours along its last axis.
int shared_steps(const ContractionPlan& plan, DType b, const Target& target) {
  constexpr int kSteps = 16;
  if (plan.matrices) return target.matrix_steps(b);
  constexpr int64_t kFewestSteps = 8;  // fewer are not worth the barriers
  if (!target.local_memory || plan.elementwise || plan.dot > 1 || plan.staged || plan.reduction_axes.empty())
    return 0;
  bool enough = plan.axes[plan.reduction_axes.back()].extent.estimate() >= kFewestSteps;
  return enough && plan.lanes % kSteps == 0 ? kSteps : 0;
}

void choose_tile(ContractionPlan& plan, const Target& target, int panel_v) {
  TileEstimate best = tile_estimates(plan, target, panel_v)[0];
  set_tiling(plan, best.tiling, panel_v);
  plan.reason = "estimated " + std::to_string(static_cast<int64_t>(best.cycles)) + " cycles per grid point";
}

// Sums of products of bytes, or bf16, take several at a time where those of "a" lie together; the order of
// such a sum is free.
void choose_dot(ContractionPlan& plan, DType a, DType b, DType accumulator, const Target& target) {
  int width = dot_width(a, b, accumulator, target);
  if (!plan.packed || plan.elementwise || width == 1) return;
  std::vector<int>& order = plan.reduction_axes;
  auto last = std::find_if(order.rbegin(), order.rend(), [&](int i) { return is_one(plan.axes[i].a); });
  if (last == order.rend()) return;
  std::rotate(last.base() - 1, last.base(), order.end());
  plan.dot = width;
  if (!is_byte(a)) return;
  bool a_signed = a == DType::kI8, b_signed = b == DType::kI8;
  if (!target.has_dot(a_signed, b_signed) && target.has_dot(!a_signed, b_signed))
    plan.dot_shift = a_signed ? 128 : -128;
}

// Whether it takes fewer instructions to put a row's elements together, in scratch that is not long, than to sum
// vectors of each run of theirs, where all tiles of columns would do that.
bool gathers_rows(const ContractionPlan& plan, const Target& target) {
  constexpr int64_t kMostBytes = 256;                            // of scratch for a row
  constexpr int64_t kStep = 10, kLoop = 8, kCopy = 2, kRow = 8;  // instructions
  const int64_t steps = reduction_count(plan).value(),
                run = plan.axes[plan.reduction_axes.back()].extent.value();
  if (run < 1 || plan.row_axes.empty()) return false;
  const int64_t vector = target.vector_bytes, runs = steps / run;
  const int64_t tiles = ceildiv(plan.axes[plan.vector_axis].extent, plan.lanes).estimate();
  if (runs == 1 || (steps + vector - 1) / vector * vector > kMostBytes) return false;
  const int64_t copies = run / vector + std::popcount(static_cast<uint64_t>(run % vector));
  const int64_t in_place = tiles * runs * ((run + vector - 1) / vector * kStep + kLoop);
  return runs * copies * kCopy + kRow + tiles * ((steps + vector - 1) / vector * kStep + kLoop) < in_place;
}

// Where the target adds the products of all lanes of two vectors to a scalar, a word is a vector: the last one of a sum
// may have unused lanes, up to half of them where there is no other. Requires merged axes.
void choose_lane_sums(ContractionPlan& plan, DType a, DType b, const Target& target) {
  if (target.lane_sums < plan.lanes || plan.dot == 1 || a != DType::kI8 || b != DType::kI8) return;
  if (!reduction_count(plan).is_const()) return;
  plan.gathers_rows = gathers_rows(plan, target);
  const Dim sum = plan.gathers_rows ? reduction_count(plan) : plan.axes[plan.reduction_axes.back()].extent;
  if (sum.value() < target.vector_bytes / 2) {
    plan.gathers_rows = false;
    return;
  }
  plan.dot = target.vector_bytes;
  plan.sums_lanes = true;
}

// Whether two axes of a sum may become one although b is quantised: neither crosses blocks that share a scale.
bool share_scales(const Axis& outer, const Axis& inner, const OperandStrides& b) {
  if (!b.quantized) return true;
  auto crosses = [&](int member) {
    const int dim = b.dim[member];
    return dim == -2 || (dim >= 0 && b.quantized->groups[dim] != 0);
  };
  const auto dim_of = [&](const Axis& axis) {
    const int first = b.dim[axis.members[0]];
    return std::all_of(axis.members.begin(), axis.members.end(), [&](int m) { return b.dim[m] == first; })
               ? first
               : -2;
  };
  const bool of_one_dim = dim_of(outer) >= 0 && dim_of(outer) == dim_of(inner);
  return of_one_dim || (std::none_of(outer.members.begin(), outer.members.end(), crosses) &&
                        std::none_of(inner.members.begin(), inner.members.end(), crosses));
}

// The blocks of the sum that share a scale of quantised `b`, along the last reduction axis; nullopt if they are none
// that a kernel walks. Requires merged axes.
std::optional<ContractionPlan::Blocks> blocks_of(const ContractionPlan& plan, const OperandStrides& b) {
  if (!b.quantized || !plan.packed || plan.elementwise || plan.reduction_axes.empty()) return std::nullopt;
  ContractionPlan::Blocks blocks{.format = *b.quantized};
  const std::vector<int64_t>& groups = blocks.format.groups;
  const Axis& last = plan.axes[plan.reduction_axes.back()];
  if (!last.extent.is_const()) return std::nullopt;
  int dim = -1;  // in which the last axis crosses groups
  int64_t step = 1;
  for (size_t m = last.members.size(); m-- > 0;) {
    const int axis = last.members[m], along = b.dim[axis];
    if (plan.member_extents[axis] == Dim(1)) continue;
    if (along == -2) return std::nullopt;
    if (along < 0 || groups[along] == 0) {
      if (dim >= 0) return std::nullopt;
      step = 0;  // what is further out must not cross groups either
      continue;
    }
    if ((dim >= 0 && along != dim) || step == 0 || !(b.step[axis] == Dim(step))) return std::nullopt;
    dim = along;
    step *= plan.member_extents[axis].value();
  }
  blocks.steps = last.extent.value();
  if (dim >= 0) {
    const int64_t group = groups[dim];
    if (group < blocks.steps) blocks.steps = group;
    // Everything else moves by whole blocks along that dim.
    auto whole = [&](const Dim& d) { return d.is_const() && d.value() % blocks.steps == 0; };
    if (group % blocks.steps != 0 || !whole(b.first[dim])) return std::nullopt;
    for (size_t i = 0; i < plan.axes.size(); ++i)
      for (int axis : plan.axes[i].members)
        if (static_cast<int>(i) != plan.reduction_axes.back() && b.dim[axis] == dim && !whole(b.step[axis]))
          return std::nullopt;
  }
  if (blocks.steps < last.extent.value() && blocks.steps % blocks.per_word() != 0) return std::nullopt;
  return blocks;
}

// The group of a's rows if a has bytes that can be multiplied by the words of b as integers, else 0. Requires blocks.
int64_t group_of_bytes(const ContractionPlan& plan, const OperandStrides& a, const Target& target) {
  constexpr int64_t kLongest = int64_t{1} << 16;  // of whose int8 dot products none overflows
  const int64_t group = a.group_of_bytes;
  const Axis& last = plan.axes[plan.reduction_axes.back()];
  if (group == 0 || !multiplies_bytes(target, plan.blocks->format.bits) || plan.lanes == 1 ||
      plan.blocks->steps > kLongest)
    return 0;
  if (!is_one(last.a) || (group != plan.blocks->steps && last.extent.value() > group)) return 0;
  auto whole = [&](const Dim& d) { return floormod(d, group) == Dim(0); };
  bool fits = whole(plan.a_offset);
  for (const Axis& axis : plan.axes) fits &= &axis == &last || whole(axis.a);
  // A sum stays in one row of a.
  if (const int64_t row = a.row_of_bytes; row != 0) {
    const int64_t extent = last.extent.value();
    fits &= plan.a_offset.is_const() && plan.a_offset.value() % row + extent <= row;
    for (const Axis& axis : plan.axes) fits &= &axis == &last || floormod(axis.a, row) == Dim(0);
  }
  return fits ? group : 0;
}

// Whether words of b are packed for products of two rows by two columns. All rows of bytes, single ones too, then read that
// order, so that prompts and tokens share constants.
bool pairs_columns(const ContractionPlan& plan, const Target& target) {
  constexpr int kLanes = 4;
  constexpr int64_t kSteps = 8, kRegister = 16;
  const ContractionPlan::Blocks& blocks = *plan.blocks;
  const int64_t extent = plan.axes[plan.reduction_axes.back()].extent.value();
  // Of eight steps both words exist, and steps past the end are zeros.
  const bool whole = blocks.per_word() >= kSteps || extent % kSteps == 0;
  return target.has_dot_2x2 && plan.lanes == kLanes && blocks.signed_elements && blocks.digits_of_a == 1 &&
         blocks.group_of_a != 0 && blocks.group_of_a % kRegister == 0 && whole &&
         (blocks.steps % kRegister == 0 || blocks.steps >= extent);
}

// Whether so many rows read a panel that it is better widened once than in each tile.
bool widens_panels(const ContractionPlan& plan, const Target& target) {
  constexpr int64_t kFewestRows = 5;
  return plan.blocks && plan.blocks->group_of_a == 0 && target.has_caches() &&
         !target.lanes_are_invocations() && !target.memory_is_dear() && reduction_count(plan).is_const() &&
         row_count(plan).estimate() >= kFewestRows;
}

}  // namespace

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
    if (!target.lanes_are_invocations())
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
    coalesce(axes, plan.reduction_axes, [&](const Axis& o, const Axis& i) {
      return fits_a(o, i) && fits_b(o, i) && share_scales(o, i, plan.swapped ? x : y);
    });
    coalesce(axes, plan.row_axes,
             [&](const Axis& o, const Axis& i) { return fits_a(o, i) && fits_out(o, i); });
  }
  // Rows of a depthwise kernel walk one axis, so that neighbours share their loads.
  if (plan.elementwise)
    while (plan.row_axes.size() > 1) {
      plan.grid_axes.push_back(plan.row_axes.front());
      plan.row_axes.erase(plan.row_axes.begin());
    }
  plan.blocks = blocks_of(plan, plan.swapped ? x : y);
  if (plan.blocks) {
    plan.blocks->group_of_a = group_of_bytes(plan, plan.swapped ? y : x, target);
    plan.blocks->digits_of_a = (plan.swapped ? y : x).digits;
    if (plan.blocks->group_of_a != 0) plan.blocks->row_of_a = (plan.swapped ? y : x).row_of_bytes;
    plan.blocks->signed_elements = middle_of_bytes(target, plan.blocks->format.bits) == 0;
    if (plan.blocks->group_of_a != 0)
      plan.blocks->words_in_halves = words_in_halves(target, plan.blocks->format.bits);
    constexpr int64_t kRegister = 16;
    const int64_t group = plan.blocks->group_of_a;
    if (target.has_dot_words && group != 0 && group % kRegister == 0) plan.blocks->bytes_at_once = kRegister;
    plan.blocks->pairs = pairs_columns(plan, target);
    plan.pairs_rows = plan.blocks->pairs && !is_one(row_count(plan)) && plan.reduction_axes.size() == 1;
  }
  plan.widens_panels = widens_panels(plan, target);
  choose_lane_sums(plan, plan.swapped ? y.dtype : x.dtype, plan.swapped ? x.dtype : y.dtype, target);
  const DType a = plan.swapped ? y.dtype : x.dtype, b = plan.swapped ? x.dtype : y.dtype;
  choose_matrices(plan, a, b, contraction.accumulator, target);
  plan.half_sums = target.adds_f16 && !plan.matrices && plan.packed && !plan.elementwise && !plan.staged &&
                   a == DType::kF16 && b == DType::kF16 && contraction.accumulator == DType::kF32;
  // What matrix units multiply with many rows has one order for few rows, too.
  const bool feeds_matrices = plan.matrices || (is_float(b) && target.matrix_steps(b) != 0);
  plan.groups_columns = plan.packed && target.lanes_are_invocations() && !plan.elementwise && !feeds_matrices;
  plan.shared_steps = shared_steps(plan, b, target);
  plan.odd_panels_apart = plan.blocks && target.has_caches() && !target.lanes_are_invocations();
  const bool streams =
      plan.packed && !plan.widens_panels && !plan.elementwise && !target.lanes_are_invocations();
  plan.panels_at_once = streams && !target.memory_is_dear() ? 2 : 1;
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

}  // namespace quernel::schedule
