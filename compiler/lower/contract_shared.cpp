// The sum of a contraction's current tile where a workgroup shares the rows of a (shared_rows.h).
#include "loop/rewrite.h"
#include "lower/contract_lowering.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

Stmt ContractLowering::reduce_shared(const loop::Buffer& acc, const Expr& b_base, const Expr& first_column) {
  const int64_t panel = plan_.packed ? plan_.panel_n() : 0, steps_of_block = plan_.shared_steps;
  const Steps fetched = steps(panel);
  const auto& [last, extent] = fetched.loops.back();
  const bool whole = floormod(extent, steps_of_block) == Dim(0);
  // Of a long sum each part is a block of its own (block_sums.h), and of a sum of halves each block.
  const bool in_parts = in_blocks_ && !plan_.half_sums;
  const int64_t part_blocks = kContractionBlock / steps_of_block;
  const Dim blocks = ceildiv(extent, steps_of_block);
  std::vector<TermLoop> loops;
  for (size_t i = 0; i + 1 < fetched.loops.size(); ++i) {
    const auto& [var, steps] = fetched.loops[i];
    loops.push_back({var, at(steps), most(steps)});
  }
  loop::Var part = index_var("part");
  Expr first_block = index(0), count = at(blocks);
  if (in_parts) {
    const Dim parts = ceildiv(blocks, part_blocks);
    loops.push_back({part, at(parts), most(parts)});
    first_block = loop::var_ref(part) * index(part_blocks);
    count = loop::binary(BinaryOp::k_min, index(part_blocks), count - first_block);
  }
  auto first_step = [&](const Expr& block) { return (first_block + block) * index(steps_of_block); };
  auto left = [&](const Expr& block) { return at(extent) - first_step(block); };
  auto value_at = [&](const Expr& block, const Expr& offset, const Expr& step) {
    loop::Substitution at_step;
    at_step.replace(last, first_step(block) + step);
    Expr a = at_step(fetched.a);
    return read(a_buffer_, offset + a, whole ? nullptr : loop::binary(BinaryOp::k_lt, step, left(block)));
  };
  auto sums_of_block = [&](const loop::Buffer& to, const SharedRows::Block& rows, const Expr& block) {
    const Steps k = steps(panel);
    const loop::Var of_block = index_var("k");
    Stmt sums = step(
        k, to, [&](Expr m, Expr) { return rows.element(m, loop::var_ref(of_block)); }, b_base, first_column);
    sums = loop::block({loop::let(k.loops.back().first, first_step(block) + loop::var_ref(of_block)), sums});
    Expr steps_here = index(steps_of_block);
    if (!whole) steps_here = loop::binary(BinaryOp::k_min, steps_here, left(block));
    std::vector<Stmt> body;  // positions in b are those in a
    for (size_t i = 0; i + 1 < k.loops.size(); ++i)
      body.push_back(loop::let(k.loops[i].first, loop::var_ref(fetched.loops[i].first)));
    body.push_back(loop::for_loop(of_block, steps_here, AxisKind::kReduction, sums));
    return loop::block(std::move(body));
  };
  auto all_blocks = [&](const loop::Buffer& to) {
    return shared_->for_blocks(count, value_at, [&](const SharedRows::Block& rows, const Expr& block) {
      auto sums = [&](const loop::Buffer& terms) { return sums_of_block(terms, rows, block); };
      return plan_.half_sums ? block_sums().block(to, sums) : sums(to);
    });
  };
  if (in_parts) return block_sums().sum(loops, kContractionBlock, acc, all_blocks);
  return in_loops(loops, all_blocks(acc));
}

}  // namespace quernel::lower
