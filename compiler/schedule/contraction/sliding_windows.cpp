#include "schedule/contraction/sliding_windows.h"

#include <algorithm>

namespace quernel::schedule {
namespace {

using Axis = ContractionPlan::Axis;

// The constant that `e` is, where it is one of at least one.
std::optional<int64_t> positive(const Dim& e) {
  return e.is_const() && e.value() >= 1 ? std::optional(e.value()) : std::nullopt;
}

// How windows slide over the dim of operand `a` that `position` walks.
std::optional<Slide> slide_along(const std::vector<Axis>& axes, int position, const OperandStrides& a) {
  auto member = [&](int i) { return axes[i].members.front(); };
  Slide slide{.position = position};
  int dim = a.dim[member(position)];
  if (dim < 0) return std::nullopt;
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = static_cast<int>(i);
    if (axis == position || a.dim[member(axis)] != dim) continue;
    if (!axes[i].reduction || slide.window >= 0) return std::nullopt;
    slide.window = axis;
  }
  int64_t reach = 1;  // elements that all windows see
  for (auto [axis, step] : {std::pair(position, &slide.step), std::pair(slide.window, &slide.window_step)}) {
    if (axis < 0) continue;
    std::optional<int64_t> extent = positive(axes[axis].extent), each = positive(a.step[member(axis)]);
    if (!extent || !each) return std::nullopt;
    *step = *each;
    reach += (*extent - 1) * *each;
  }
  std::optional<int64_t> stride = positive(a.dim_strides[dim]);
  if (!stride) return std::nullopt;
  slide.stride = *stride;
  slide.end = reach;
  return slide;
}

// Narrows the slide by a guard on the elements that it sees; false where the guard is on something else.
bool apply_guard(const IndexGuard& guard, const std::vector<Axis>& axes, const OperandStrides& a,
                 Slide& slide) {
  std::optional<AffineForm> f = as_affine(guard.expr, static_cast<int>(a.axis.size()));
  if (!f || !f->offset.is_const() || !guard.lo.is_const() || !guard.hi.is_const()) return false;
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = static_cast<int>(i), member = axes[i].members.front();
    bool slides = axis == slide.position || axis == slide.window;
    if (!(f->coefficients[member] == (slides ? a.step[member] : Dim(0)))) return false;
  }
  slide.begin = std::max(slide.begin, guard.lo.value() - f->offset.value());
  slide.end = std::min(slide.end, guard.hi.value() - f->offset.value());
  return slide.begin < slide.end;
}

// Rows of a staged image that a block of `rows` rows of the output sees.
int64_t staged_rows(const Slide& slide, const std::vector<Axis>& axes, int64_t rows) {
  int64_t window = slide.window < 0 ? 1 : axes[slide.window].extent.value();
  return (rows - 1) * slide.step + (window - 1) * slide.window_step + 1;
}

constexpr int64_t kLargestStageBytes = 64 << 10;  // of scratch

}  // namespace

StagedImages staged_images(const Target& target) {
  // Vectors of elements that far apart are loaded whole and shuffled, into scratch: firmware's stacks are
  // short, and the invocations of a GPU have none in common.
  constexpr int64_t kLargestStep = 4, kFewestDotColumns = 32;
  if (target.lanes_are_invocations() || target.memory_is_dear() || target.lanes(4) == 1) return {};
  return {.largest_step = kLargestStep,
          .most_bytes = kLargestStageBytes,
          .fewest_dot_columns = kFewestDotColumns};
}

std::optional<ContractionPlan::Image> stage_image(const std::vector<ContractionPlan::Axis>& axes, int vector,
                                                  const std::vector<int>& rows, const OperandStrides& image,
                                                  int at_once, const Target& target) {
  constexpr int64_t kWidestUnrolled = 16;
  int64_t largest_step = staged_images(target).largest_step;
  if (largest_step == 1 || rows.empty() || image.dtype == DType::kBool || is_packed(image.dtype))
    return std::nullopt;
  for (const Axis& axis : axes)
    if (image.dim[axis.members.front()] == -2) return std::nullopt;
  int y = *std::min_element(rows.begin(), rows.end(),
                            [&](int i, int j) { return axes[i].out.estimate() < axes[j].out.estimate(); });
  std::optional<Slide> down = slide_along(axes, y, image), along = slide_along(axes, vector, image);
  if (!down || !along || along->step * along->stride > largest_step) return std::nullopt;
  // Elements of a window lie in lines by their number, which is known where the loop over them is unrolled.
  if (along->step > 1 && along->window >= 0 && axes[along->window].extent.value() > kWidestUnrolled)
    return std::nullopt;
  ContractionPlan::Image staged{*down, *along, {}};
  int64_t planes = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    int axis = static_cast<int>(i);
    if (!axes[i].reduction || axis == down->window || axis == along->window) continue;
    std::optional<int64_t> extent = positive(axes[i].extent);
    if (!extent) return std::nullopt;
    planes *= *extent;
    staged.planes.push_back(axis);
  }
  for (const IndexGuard& guard : image.guards)
    if (!apply_guard(guard, axes, image, staged.rows) && !apply_guard(guard, axes, image, staged.columns))
      return std::nullopt;
  int64_t line = staged_rows(*along, axes, axes[vector].extent.value());
  int64_t least = std::min<int64_t>(at_once, axes[y].extent.value());
  if (planes * staged_rows(*down, axes, least) * line * element_size(image.dtype) > kLargestStageBytes)
    return std::nullopt;
  return staged;
}

std::optional<std::vector<Slide>> slides_in_place(const std::vector<Axis>& axes, const std::vector<int>& rows,
                                                  const OperandStrides& a, const Target& target) {
  constexpr int64_t kMostClipped = 8;    // rows whose windows reach beyond an end of the image
  constexpr int64_t kWidestWindow = 16;  // whose steps are unrolled
  std::vector<Slide> slides;
  // Tiles at the ends of a row have separate code.
  if (!target.lanes_are_invocations() && !target.code_is_dear())
    for (int axis : rows)
      if (std::optional<Slide> s = slide_along(axes, axis, a); s && s->window >= 0)
        if (axes[s->window].extent.value() <= kWidestWindow) slides.push_back(*s);
  for (const IndexGuard& guard : a.guards)
    if (std::none_of(slides.begin(), slides.end(),
                     [&](Slide& slide) { return apply_guard(guard, axes, a, slide); }))
      return std::nullopt;
  for (const Slide& s : slides) {
    int64_t positions = axes[s.position].extent.value();
    int64_t beyond = staged_rows(s, axes, positions) - s.end;
    if (s.begin > kMostClipped * s.step || beyond > kMostClipped * s.step) return std::nullopt;
    // Every position sees some of the image.
    int64_t window = (axes[s.window].extent.value() - 1) * s.window_step;
    if (window < s.begin || (positions - 1) * s.step >= s.end) return std::nullopt;
  }
  return slides;
}

}  // namespace quernel::schedule
