// Where an im2row buffer (ContractionPlan::staged) stores the elements of its images.
#pragma once

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {

struct ImageLayout {
  int64_t lead = 0;    // elements before the first line of a row
  int64_t line = 0;    // from one line to the next
  int64_t row = 0;     // from one row to the next
  int64_t planes = 1;  // images, one after another

  // Returns the elements for blocks whose images have `rows` rows each.
  int64_t elements(int64_t rows) const { return planes * rows * row; }
};
// Requires plan.staged and a tile.
ImageLayout image_layout(const ContractionPlan& plan);

// Returns the steps of a window that slides so; 1 for a window of one element.
int64_t window_steps(const ContractionPlan& plan, const Slide& slide);
// Returns the rows of an image that a block of `rows` rows of results sees.
int64_t image_rows(const ContractionPlan& plan, int64_t rows);
// Returns the columns of line `line` before `column` of an image.
int64_t line_columns(const Slide& columns, int64_t line, int64_t column);

}  // namespace quernel::schedule
