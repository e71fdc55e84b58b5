// Adds up many floats in blocks, so that rounding errors do not grow with the number of terms. Each block of
// terms has a separate accumulator, which is then added to the accumulator of 256 blocks; a loop has at most
// these two levels. Short sums remain one chain.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// The most terms that one accumulator of a reduction adds in one chain, and the terms per block of longer
// sums.
inline constexpr int64_t kLongestChain = 1024, kBlockTerms = 256;
// The same for a contraction.
inline constexpr int64_t kLongestContraction = 16384, kContractionBlock = 512;
// Accumulators that are added to one of the next level.
inline constexpr int64_t kBlocksTogether = 256;

// Returns the largest value of a dim; INT64_MAX if it is unbounded.
int64_t most(const Dim& dim);
// Return a * b and a + b, at most INT64_MAX.
int64_t saturating_product(int64_t a, int64_t b);
int64_t saturating_sum(int64_t a, int64_t b);

// Returns whether the order of additions in this dtype matters, so that blocks help.
bool rounds_sums(BinaryOp op, DType accumulator);

// One loop over terms: `extent` iterations, at most `most`.
struct TermLoop {
  loop::Var var;
  loop::Expr extent;
  int64_t most = 0;
  loop::AxisKind kind = loop::AxisKind::kReduction;
};

// Returns the loops around `body`, outermost first.
loop::Stmt in_loops(const std::vector<TermLoop>& loops, loop::Stmt body);

// Returns `chain()` if there are at most `longest` terms, else `blocks()`; an if with both if the number is
// known only at run time.
loop::Stmt chain_or_blocks(const loop::Expr& terms, int64_t longest, const std::function<loop::Stmt()>& chain,
                           const std::function<loop::Stmt()>& blocks);

class BlockSums {
 public:
  // `each_slot(body)` returns the statements `body(slot)` for all `slots` elements of an accumulator buffer.
  using EachSlot = std::function<loop::Stmt(const std::function<loop::Stmt(loop::Expr slot)>& body)>;
  // `dtype`: of blocks' accumulators. `levels`: 1, or 2 for blocks of blocks.
  BlockSums(DType dtype, int64_t slots, int64_t block_terms, EachSlot each_slot, size_t levels = 2)
      : dtype_(dtype),
        slots_(slots),
        block_terms_(block_terms),
        levels_(levels),
        each_slot_(std::move(each_slot)) {}

  // Adds to `to` the sum of the loops, outermost first, around `body(accumulators)`. The body adds at most
  // `inner_terms` terms to each of the `slots` accumulators it is given.
  loop::Stmt sum(const std::vector<TermLoop>& loops, int64_t inner_terms, const loop::Buffer& to,
                 const std::function<loop::Stmt(const loop::Buffer& accumulators)>& body) const;
  // Adds to `to` what `terms(accumulators)` adds to separate accumulators.
  loop::Stmt block(const loop::Buffer& to,
                   const std::function<loop::Stmt(const loop::Buffer& accumulators)>& terms) const;

 private:
  struct Nest;
  loop::Stmt from_loop(const Nest& nest, size_t i, const loop::Buffer& to) const;
  loop::Stmt turns(const Nest& nest, size_t i, const std::vector<int64_t>& sizes, size_t level,
                   const loop::Expr& first, const loop::Expr& count, const loop::Buffer& to) const;

  DType dtype_;
  int64_t slots_, block_terms_;
  size_t levels_;
  EachSlot each_slot_;
};

}  // namespace quernel::lower
