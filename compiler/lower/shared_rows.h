// The rows of "a" that a contraction tile needs for some steps of its sum, in a GPU's shared memory
// (ContractionPlan::shared_steps), step by step or row by row (shares_by_rows). The workgroup's invocations fetch them
// together, each element once; neighbouring lanes fetch neighbours along the sum's last axis. While one block of steps is
// summed, the next one is on its way: to registers, and then to the other one of two buffers. Code generation puts a barrier
// between two blocks.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

class SharedRows {
 public:
  SharedRows(const schedule::ContractionPlan& plan, DType dtype);

  // A block of steps in shared memory.
  class Block {
   public:
    Block(loop::Buffer elements, int64_t pitch, bool by_rows)
        : elements_(std::move(elements)), pitch_(pitch), by_rows_(by_rows) {}
    loop::Expr element(const loop::Expr& row, const loop::Expr& step) const;
    // The rows of a tile by the steps fetched, as a matrix.
    loop::MatrixPlace matrix() const {
      return {elements_, index(0), by_rows_ ? pitch_ : 1, by_rows_ ? 1 : pitch_};
    }
    loop::Stmt store(const loop::Expr& row, const loop::Expr& step, const loop::Expr& value) const;

   private:
    loop::Expr slot(const loop::Expr& row, const loop::Expr& step) const;

    loop::Buffer elements_;  // [step][row], or [row][step]
    int64_t pitch_;
    bool by_rows_;
  };

  // `offset_of`: the offset in a of a row, counted from the tile's first; the row may be past the tile's last
  // one.
  std::vector<loop::Stmt> begin(const std::function<loop::Expr(loop::Expr)>& offset_of) const;
  // Returns the element of a at a row's offset and a step, counted from the first one of block `block`.
  using ValueAt = std::function<loop::Expr(const loop::Expr& block, loop::Expr offset, loop::Expr step)>;
  // Returns the sums of a block, with variables that no other block has.
  using Sum = std::function<loop::Stmt(const Block& rows, const loop::Expr& block)>;
  // Sums the blocks below `count` in order. Requires one or more, if their number is known.
  loop::Stmt for_blocks(const loop::Expr& count, const ValueAt& value_at, const Sum& sum) const;

 private:
  loop::Buffer shared_block(DType dtype) const;
  Block block_of(const loop::Buffer& elements) const { return {elements, pitch_, by_rows_}; }
  // `body` gets an element's number in the order of fetching, its row and its step.
  loop::Stmt for_each(const std::function<loop::Stmt(loop::Expr, loop::Expr, loop::Expr)>& body) const;
  loop::Stmt fetch(const loop::Expr& block, const ValueAt& value_at) const;
  loop::Stmt put(const Block& block) const;

  bool by_rows_;
  int64_t lanes_, steps_, pitch_, rows_of_vector_, vectors_;
  loop::Buffer offsets_;     // of the rows whose elements an invocation fetches
  loop::Buffer fetched_;     // the elements that an invocation has fetched of the next block
  loop::Buffer even_, odd_;  // blocks of even and odd numbers
};

}  // namespace quernel::lower
