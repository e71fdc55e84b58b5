// Sums of many floats in blocks, so that rounding errors do not grow with the number of terms: each block of
// terms has an accumulator of its own, which then goes to that of 256 blocks, and so on. Short sums stay one
// chain.
#pragma once

#include "lower/loop_nest.h"

namespace quernel::lower {

// Terms that one accumulator of a reduction may take in a chain, and those of a block where there are more.
inline constexpr int64_t kLongestChain = 1024, kBlockTerms = 256;
// The same of a contraction.
inline constexpr int64_t kLongestContraction = 16384, kContractionBlock = 512;
// Accumulators that go to one of the next level.
inline constexpr int64_t kBlocksTogether = 256;

// The most that a dim can be; INT64_MAX where nothing bounds it.
int64_t most(const Dim& dim);
// a * b and a + b, at most INT64_MAX.
int64_t saturating_product(int64_t a, int64_t b);
int64_t saturating_sum(int64_t a, int64_t b);

// Whether the order of adding numbers of this dtype matters, and blocks help.
bool rounds_sums(BinaryOp op, DType accumulator);

// One loop over terms: `extent` turns, `most` at most.
struct TermLoop {
  loop::Var var;
  loop::Expr extent;
  int64_t most = 0;
  loop::AxisKind kind = loop::AxisKind::kReduction;
};

// `chain()` where there are at most `longest` terms, else `blocks()`; both where only a run tells.
loop::Stmt chain_or_blocks(const loop::Expr& terms, int64_t longest, const std::function<loop::Stmt()>& chain,
                           const std::function<loop::Stmt()>& blocks);

class BlockSums {
 public:
  // `each_slot(body)`: the statements `body(slot)` for all `slots` elements of an accumulator buffer.
  using EachSlot = std::function<loop::Stmt(const std::function<loop::Stmt(loop::Expr slot)>& body)>;
  BlockSums(DType dtype, int64_t slots, int64_t block_terms, EachSlot each_slot)
      : dtype_(dtype), slots_(slots), block_terms_(block_terms), each_slot_(std::move(each_slot)) {}

  // Adds to `to` what the loops, the outermost first, add up around `body(accumulators)`, which adds at most
  // `inner_terms` terms to each of the accumulators that it is given, of `slots` elements.
  loop::Stmt sum(const std::vector<TermLoop>& loops, int64_t inner_terms, const loop::Buffer& to,
                 const std::function<loop::Stmt(const loop::Buffer& accumulators)>& body) const;
  // Adds to `to` what `terms(accumulators)` adds to accumulators of its own.
  loop::Stmt block(const loop::Buffer& to,
                   const std::function<loop::Stmt(const loop::Buffer& accumulators)>& terms) const;

 private:
  struct Nest;
  loop::Stmt from_loop(const Nest& nest, size_t i, const loop::Buffer& to) const;
  loop::Stmt turns(const Nest& nest, size_t i, const std::vector<int64_t>& sizes, size_t level,
                   const loop::Expr& first, const loop::Expr& count, const loop::Buffer& to) const;

  DType dtype_;
  int64_t slots_, block_terms_;
  EachSlot each_slot_;
};

}  // namespace quernel::lower
