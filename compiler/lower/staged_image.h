// The image of a convolution in scratch, or the images of its few channels (ContractionPlan::staged): of each
// of the rows that a block of output rows sees, columns c, c + step, c + 2 step, ... for every c below the
// step in a line of its own, so that neighbours in vectors lie together. Elements that windows see beyond the
// image are zero.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

class StagedImage {
 public:
  StagedImage(const schedule::ContractionPlan& plan, DType dtype);

  // Bytes for a block of `rows` output rows.
  int64_t bytes(int64_t rows) const;
  // Makes the buffer for such blocks. Returns what fills it with zeros, which copies leave beyond the image.
  loop::Stmt allocate(int64_t rows);
  const loop::Buffer& buffer() const { return buffer_; }
  // Copies what the block of output rows beginning at `first` sees, of the image whose first element that any
  // window sees is element `origin` of `image`, and of the others at the strides of their axes.
  loop::Stmt copy(const loop::Buffer& image, const loop::Expr& origin, const loop::Expr& first) const;

  // Where the first column of an output row's windows lies, `row` counted from the block's first; there is
  // room for whole tiles.
  loop::Expr row_offset(const loop::Expr& row) const;
  // What a position on a reduction axis of the plan adds to it.
  loop::Expr window_offset(int axis, const loop::Expr& position) const;

 private:
  int64_t window_of(const schedule::Slide& slide) const;
  int64_t image_rows(int64_t rows) const;
  int64_t line_columns(int64_t c, int64_t column) const;
  int64_t whole_vectors(int64_t size) const { return (size + lanes_ - 1) / lanes_ * lanes_; }
  loop::Stmt pieces(int64_t count, int64_t width, const std::function<loop::Stmt(loop::Expr)>& body) const;
  loop::Stmt zeros(const loop::Expr& first, int64_t count) const;
  loop::Stmt copy_plane(const loop::Buffer& image, const loop::Expr& origin, const loop::Expr& first,
                        const loop::Expr& to) const;

  const schedule::ContractionPlan& plan_;
  const schedule::Slide &rows_, &columns_;
  DType dtype_;
  int64_t lanes_;
  int64_t lead_ = 0;                // elements before the first line of a row
  int64_t line_ = 0;                // from one line to the next
  int64_t row_ = 0;                 // from one row to the next
  int64_t lines_ = 0, planes_ = 1;  // rows of an image, and images
  loop::Buffer buffer_;
};

}  // namespace quernel::lower
