// The rows of "a" that a contraction tile needs for some steps of its sum, in a GPU's shared memory
// (ContractionPlan::shared_steps). The workgroup's invocations fetch them together, each element once;
// neighbouring lanes fetch neighbours along the sum's last axis. Code generation puts a barrier before and
// after the fetch.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

class SharedRows {
 public:
  SharedRows(const schedule::ContractionPlan& plan, DType dtype);

  // `offset_of`: the offset in a of a row, counted from the tile's first; the row may be past the tile's last
  // one.
  std::vector<loop::Stmt> begin(const std::function<loop::Expr(loop::Expr)>& offset_of) const;
  // `value_at`: the element of a at a row's offset and a step, counted from the first step fetched.
  loop::Stmt fetch(const std::function<loop::Expr(loop::Expr offset, loop::Expr step)>& value_at) const;
  loop::Expr element(const loop::Expr& row, const loop::Expr& step) const;
  // The rows of a tile by the steps fetched, as a matrix.
  loop::MatrixPlace matrix() const { return {elements_, index(0), 1, pitch_}; }

 private:
  // `body` gets an element's number in the order of fetching, its row and its step.
  loop::Stmt for_each(const std::function<loop::Stmt(loop::Expr, loop::Expr, loop::Expr)>& body) const;

  int64_t lanes_, steps_, pitch_, rows_of_vector_, vectors_;
  loop::Buffer offsets_;   // of the rows whose elements an invocation fetches
  loop::Buffer elements_;  // [step][row]
};

}  // namespace quernel::lower
