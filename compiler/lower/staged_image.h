// The im2row buffer of a convolution (ContractionPlan::staged): the input rows that a block of output rows
// reads, from one image or from several channels. In each row, columns c, c + step, c + 2 step, ... are
// stored in one line, for every c below the step, so that neighbours in a vector are contiguous. Elements
// outside the image are zero.
#pragma once

#include "lower/loop_nest.h"
#include "schedule/contraction/image_layout.h"

namespace quernel::lower {

class StagedImage {
 public:
  StagedImage(const schedule::ContractionPlan& plan, DType dtype);

  // Creates the buffer for blocks of `rows` output rows. Returns the statement that fills it with zeros; copies do not write
  // outside the image.
  loop::Stmt allocate(int64_t rows);
  const loop::Buffer& buffer() const { return buffer_; }
  // Copies the elements that the block of output rows from `first` on reads. `origin`: the element of `image`
  // that is the first any window reads. Further planes follow at the strides of their axes.
  loop::Stmt copy(const loop::Buffer& image, const loop::Expr& origin, const loop::Expr& first) const;

  // Returns the offset of an output row's first window. `row`: counted from the block's first; there is room
  // for whole tiles.
  loop::Expr row_offset(const loop::Expr& row) const;
  // Returns what a position on a reduction axis of the plan adds to it.
  loop::Expr window_offset(int axis, const loop::Expr& position) const;

 private:
  int64_t whole_vectors(int64_t size) const { return (size + lanes_ - 1) / lanes_ * lanes_; }
  loop::Stmt pieces(int64_t count, int64_t width, const std::function<loop::Stmt(loop::Expr)>& body) const;
  loop::Stmt zeros(const loop::Expr& first, int64_t count) const;
  loop::Stmt copy_plane(const loop::Buffer& image, const loop::Expr& origin, const loop::Expr& first,
                        const loop::Expr& to) const;

  const schedule::ContractionPlan& plan_;
  const schedule::Slide &rows_, &columns_;
  schedule::ImageLayout layout_;
  DType dtype_;
  int64_t lanes_;
  int64_t lines_ = 0;  // rows of an image
  loop::Buffer buffer_;
};

}  // namespace quernel::lower
