#include "schedule/contraction/image_layout.h"

#include <algorithm>

namespace quernel::schedule {

int64_t window_steps(const ContractionPlan& plan, const Slide& slide) {
  return slide.window < 0 ? 1 : plan.axes[slide.window].extent.value();
}

int64_t image_rows(const ContractionPlan& plan, int64_t rows) {
  const Slide& down = plan.staged->rows;
  return (rows - 1) * down.step + (window_steps(plan, down) - 1) * down.window_step + 1;
}

int64_t line_columns(const Slide& columns, int64_t line, int64_t column) {
  return std::max<int64_t>((column - line + columns.step - 1) / columns.step, 0);
}

ImageLayout image_layout(const ContractionPlan& plan) {
  const Slide& columns = plan.staged->columns;
  const int64_t lanes = plan.lanes;
  auto whole_vectors = [&](int64_t size) { return (size + lanes - 1) / lanes * lanes; };
  // Vectors are stored aligned where lines begin to hold elements of the image: in the first one, and from
  // one line to the next.
  int64_t first = line_columns(columns, 0, columns.begin);
  int64_t shift = columns.step > 1 ? first - line_columns(columns, 1, columns.begin) : 0;
  int64_t tiles = column_tile_count(plan).value();
  int64_t seen =
      tiles * plan.tile_n() + (window_steps(plan, columns) - 1) * columns.window_step / columns.step;
  ImageLayout layout;
  layout.lead = -first & (lanes - 1);
  layout.line = whole_vectors(std::max(seen, line_columns(columns, 0, columns.end))) + (shift & (lanes - 1));
  layout.row = whole_vectors(layout.lead + layout.line * columns.step);
  for (int axis : plan.staged->planes) layout.planes *= plan.axes[axis].extent.value();
  return layout;
}

}  // namespace quernel::schedule
