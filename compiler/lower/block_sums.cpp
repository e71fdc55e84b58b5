#include "lower/block_sums.h"

#include <algorithm>

namespace quernel::lower {

using loop::Expr;
using loop::Stmt;

int64_t most(const Dim& dim) { return std::max<int64_t>(dim.upper_bound().bounds().hi, 0); }

int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

int64_t saturating_sum(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

bool rounds_sums(BinaryOp op, DType accumulator) {
  return op == BinaryOp::k_add && is_float(accumulator) && accumulator != DType::kF64;
}

Stmt in_loops(const std::vector<TermLoop>& loops, Stmt body) {
  for (size_t i = loops.size(); i-- > 0;)
    body = loop::for_loop(loops[i].var, loops[i].extent, loops[i].kind, body);
  return body;
}

Stmt chain_or_blocks(const Expr& terms, int64_t longest, const std::function<Stmt()>& chain,
                     const std::function<Stmt()>& blocks) {
  int64_t known = -1;
  if (loop::as_const_int(terms, &known)) return known <= longest ? chain() : blocks();
  Stmt if_few = chain();
  return loop::if_then(loop::binary(BinaryOp::k_le, terms, index(longest)), if_few, blocks());
}

struct BlockSums::Nest {
  const std::vector<TermLoop>& loops;
  std::vector<int64_t> terms;  // of the loops from i on; last: of the body
  const std::function<Stmt(const loop::Buffer&)>& body;
};

Stmt BlockSums::sum(const std::vector<TermLoop>& loops, int64_t inner_terms, const loop::Buffer& to,
                    const std::function<Stmt(const loop::Buffer&)>& body) const {
  Nest nest{loops, std::vector<int64_t>(loops.size() + 1, std::max<int64_t>(inner_terms, 1)), body};
  for (size_t i = loops.size(); i-- > 0;)
    nest.terms[i] = saturating_product(nest.terms[i + 1], std::max<int64_t>(loops[i].most, 1));
  return from_loop(nest, 0, to);
}

Stmt BlockSums::from_loop(const Nest& nest, size_t i, const loop::Buffer& to) const {
  if (i == nest.loops.size()) return nest.body(to);
  const TermLoop& loop = nest.loops[i];
  if (nest.terms[i] <= block_terms_ || loop.kind == loop::AxisKind::kUnrolled)
    return loop::for_loop(loop.var, loop.extent, loop.kind, from_loop(nest, i + 1, to));
  // Turns of this loop that make up a block, a block of blocks, …
  std::vector<int64_t> sizes{std::max<int64_t>(1, block_terms_ / nest.terms[i + 1])};
  while (sizes.size() < levels_ && loop.most / sizes.back() > kBlocksTogether)
    sizes.push_back(sizes.back() * kBlocksTogether);
  return turns(nest, i, sizes, sizes.size(), index(0), loop.extent, to);
}

// `count` turns of loop i from `first` on, in blocks of sizes[level - 1].
Stmt BlockSums::turns(const Nest& nest, size_t i, const std::vector<int64_t>& sizes, size_t level,
                      const Expr& first, const Expr& count, const loop::Buffer& to) const {
  const TermLoop& loop = nest.loops[i];
  if (level == 0) {
    loop::Var turn = index_var("turn");
    Stmt body = loop::block({loop::let(loop.var, first + loop::var_ref(turn)), from_loop(nest, i + 1, to)});
    return loop::for_loop(turn, count, loop::AxisKind::kReduction, body);
  }
  const int64_t size = sizes[level - 1];
  loop::Var number = index_var("sum_block");
  Expr begin = loop::var_ref(number) * index(size), here = index(size);
  int64_t known = -1;
  if (!loop::as_const_int(count, &known) || known % size != 0)
    here = loop::binary(BinaryOp::k_min, here, count - begin);
  Stmt one = block(to, [&](const loop::Buffer& partial) {
    return turns(nest, i, sizes, level - 1, first + begin, here, partial);
  });
  Expr blocks = loop::binary(BinaryOp::k_idiv, count + index(size - 1), index(size));
  return loop::for_loop(number, blocks, loop::AxisKind::kReduction, one);
}

Stmt BlockSums::block(const loop::Buffer& to,
                      const std::function<Stmt(const loop::Buffer& accumulators)>& terms) const {
  loop::Buffer partial = local_buffer("partial", dtype_, slots_, loop::Scope::kRegister);
  Stmt clear =
      each_slot_([&](const Expr& slot) { return loop::store(partial, slot, loop::const_float(dtype_, 0)); });
  Stmt all = terms(partial);
  Stmt add = each_slot_([&](const Expr& slot) {
    return loop::store(to, slot, loop::load(to, slot) + loop::cast(to->dtype, loop::load(partial, slot)));
  });
  return loop::block({loop::alloc(partial), clear, all, add});
}

}  // namespace quernel::lower
