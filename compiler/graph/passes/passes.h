// The graph passes. Each builds a new graph that computes the same. compiler/pipeline/pass_tables.cpp has the
// order in which they run.
#pragma once

#include <vector>

#include <functional>
#include <optional>

#include "graph/ir.h"

namespace quernel {

// The bytes that fold_constants may still make. One is for all calls on a graph, from its import to its
// kernels, so that a small graph never folds to gigabytes.
struct FoldBudget {
  std::optional<int64_t> left;  // nullopt: decided by the first call, from the constants that its graph has
};

// Contractions of dequantised 8-bit operands, weights constant, become sums of integers that are scaled:
//   contract(mul(cast(sub(cast x, z)), s), mul(cast w, t)) -> mul(cast(add(contract(x, w), -z * sum w)), s*t)
// A division by the next scale joins that scale, through bias and clamps. The integers' sums are exact; what
// the scales are multiplied by is rounded in another order, so that results may differ in the last bits.
// `activations`: what the bytes that meet weights of i8 become, i8 or u8; else they stay what they are.
// `folding` is the budget of fold_constants; null: one of its own.
Expected<Graph> form_integer_contractions(const Graph& graph, std::optional<DType> activations,
                                          FoldBudget* folding = nullptr);

// Nodes whose operands are all constants become constants, computed by the interpreter.
//   add(constant 1, constant 2) -> constant 3
// Movement of large data that only grows it (expand) is left alone.
Expected<Graph> fold_constants(const Graph& graph);
// Takes the bytes of its results from `budget`, and makes none when that is used up.
Expected<Graph> fold_constants(const Graph& graph, FoldBudget& budget);
// The same but for nodes that `keep` names.
Expected<Graph> fold_constants(const Graph& graph, FoldBudget& budget,
                               const std::function<bool(const Graph&, const Node&)>& keep);

// Equal nodes (op, operands, attributes; constants by content) become one.
Expected<Graph> merge_common_subexpressions(const Graph& graph);

// Nodes that reach no output disappear; inputs stay.
Expected<Graph> eliminate_dead_nodes(const Graph& graph);

// Identities: x+0, x*1, x*0 only where exact for the dtype, cast to the same type, double negation, where
// with constant condition, relu(relu x), max/min chains with constants, pow(x, 2|0.5|1), div by constant
// power of two, …
Expected<Graph> simplify_algebra(const Graph& graph);

// Powers with common exponents as products and square roots, each rounded: within 1.5 units in the last
// place.
//   pow(x, 3) -> mul(mul(x, x), x);  where x >= 0: pow(x, 0.75) -> mul(sqrt(x), sqrt(sqrt(x)))
Expected<Graph> expand_powers(const Graph& graph);

// Scales and shifts by constants along output channels move into the weights of the contraction before them:
//   mul(contract(x, w), s) -> contract(x, w*s);  add(add(contract, b), t) -> add(contract, b+t); this is
//   batch-norm folding.
// Products are associated anew, so that results may differ in the last bits. Of f32 and f64 only: the scaled
// weights of narrower floats would be rounded again, each by more than the result is.
Expected<Graph> fold_scales_into_contractions(const Graph& graph);

// Large f32 constants that contractions and takes read become `storage`, f16 or bf16, rounded to nearest; the
// results stay f32, and so does all arithmetic:
//   contract(x, w) -> contract(x, w');  take(w, i) -> cast(take(w', i))
// Constants with elements beyond a quarter of f16's range stay, and so do those that others read, too; for
// bf16, also those of convolutions by Winograd's algorithm.
Expected<Graph> narrow_weights(const Graph& graph, DType storage);
// How much of all large f32 constants their rounding to `storage` is: the root of the mean square, as a share
// of theirs.
double rounding_error(const std::vector<Graph>& graphs, DType storage);

// Contractions whose constant weights take more than `most_bytes` become several of parts of them, along an
// axis of the result that the other operand has not:
//   contract(x, w) -> cat(contract(x, w[.., 0:n]), contract(x, w[.., n:2n]), ..)
// What has no such axis stays.
Expected<Graph> split_weights(const Graph& graph, int64_t most_bytes);

// Cats of more than `most_operands` operands, at least 2, become cats of cats, which are written in place:
//   cat(a, b, c, d) -> cat(cat(a, b), cat(c, d))
Expected<Graph> split_long_cats(const Graph& graph, size_t most_operands);

// Movement chains that a named op can express become that op, and those that move nothing vanish:
//   permute(permute(x, p), q) -> permute(x, p[q])
//   reshape(reshape(x)) -> reshape(x)
//   flip(flip(x, a), a) -> x
//   slice(slice), pad(pad) with one fill, slice(pad) inside or around the data, slice(cat) within one operand,
//   cat(cat)
// Permutes stay permutes, so that layout passes recognise them.
Expected<Graph> canonicalize_movement(const Graph& graph);

// What a body need not get, keep or give any more:
//   constants and views that it reads move into it; operands that it does not read, values that a loop
//   carries but never changes, and results that nobody reads disappear.
Expected<Graph> simplify_control_flow(const Graph& graph);

// The nodes that `on_host` marks (per node; constants go with those that read them) become bodies of on_host
// nodes, as few as their order allows:
//   add(contract(x, w), b), contract marked -> add(result(on_host x { contract(x, w) }), b)
Expected<Graph> move_to_host(const Graph& graph, const std::vector<char>& on_host);

// What is left of movement chains with single uses becomes one view where the composed map is affine:
//   flip(slice(permute(x))) -> view(x)
// The last word on movement: later passes no longer see which op it was.
Expected<Graph> compose_views(const Graph& graph);

// Maxima and minima of large windows over two dims, neither of them the innermost, become those of the
// columns and then those of the rows:
//   reduce_max(view [y + i, x + j, c] {i, j}) -> reduce_max(view(reduce_max(view [y, x + j, c] {j})) [y + i,
//   x, c] {i})
Expected<Graph> split_windows(const Graph& graph);

// Reductions of more elements than one workgroup should have become reductions of parts, which workgroups
// share, and of the parts' results:
//   reduce_sum x {0} -> reduce_sum(reduce_sum(reshape x : [parts, n]) {1}) {0}
// Parts of sums and products are of the accumulator's dtype; their order is another one, the same for any
// number of threads. Reduced dims that only a run tells, and arg reductions, stay.
struct ReductionLimits {
  int64_t least_shared = 0;       // elements in all that fewer workgroups than enough should not have
  int64_t enough_workgroups = 0;  // to share a kernel among
  int64_t part_work = 0;          // elements of a part
  int64_t fewest_terms = 2;       // of a part
  int64_t most_terms = 0;         // of a result
  int64_t most_work = 0;          // elements of a workgroup
  int64_t most_together = 0;      // results that a workgroup computes side by side
  int64_t longest_row = 0;        // along the last dim, which other stages may share a kernel with
};
Expected<Graph> split_long_reductions(const Graph& graph, const ReductionLimits& limits);

// Contractions of more terms than one workgroup should add up become a sum of contractions of parts:
//   contract %x, %w axes(m, n | k: 65536) -> reduce_sum(contract %x, %w axes(part: 4, m, n | k: 16384)) {0}
// Where the parts' results would take much memory, one after another adds to those before it. The order of
// terms is another one, the same for any number of threads.
struct ContractionLimits {
  int64_t most_terms = 0;      // of a result
  int64_t part_terms = 0;      // of a part
  int64_t longest_shared = 0;  // terms that are left in one part, however few the results
  int64_t few_results = 0;     // that too few workgroups compute
  int64_t least_shared = 0;    // products in all that these should not have
};
Expected<Graph> split_long_contractions(const Graph& graph, const ContractionLimits& limits);

// Long lines of scans, ArgMax and ArgMin, and sorts that want a few elements, in blocks:
//   scan_sum x -> add(scan_sum(blocks), scan_sum(reduce_sum(blocks)))
//   argmax x -> argmax(best of each block)
//   argsort x, first k -> argsort(first k of each block), first k
// Or groups of few elements: the first k are in the k groups whose first elements go before those of others.
// A sort of long lines of booleans becomes a scatter to the places that running counts give. Sums are added
// in another order.
struct LongLines {
  static constexpr int64_t kLongest = int64_t{1} << 24;  // elements of a line without a bound
  static constexpr double kManyLines = 8;                // that share the work without being split
  bool by_bounds = false;                   // the most elements count, and many lines are split, too
  int64_t longest = 0, longest_sorted = 0;  // elements of a line that stays whole
  int64_t block = 0, arg_block = 0, sorted_block = 0;  // about so many of a block
  int64_t most_kept = 0;                               // elements that a sort of blocks may want
  int64_t most_grouped = 0;                            // and one of the groups of greatest elements
};
Expected<Graph> split_long_lines(const Graph& graph, const LongLines& limits);

// Scatters of sums, maxima and minima whose places have many updates, in parts with a table each:
//   scatter_nd add %x, %i, %u : f32[100] -> add(%x, reduce_sum(scatter_nd add zeros: f32[parts, 100]) {0})
// The order of the terms of a sum is another one, the same for any number of threads.
struct LongScatters {
  bool columns_count =
      false;                // as updates of their own, and scatters of many slices, which threads share, stay
  int64_t longest = 0;      // updates of a place's slice, at the most, that stay in one part
  int64_t part = 0;         // updates of a part,
  int64_t most_places = 1;  // or this many for each place
  int64_t free_parts = 0;   // parts where only a run tells how many updates there are; 0: it stays whole
  int64_t most_results = 0;  // elements of all tables then
};
Expected<Graph> split_long_scatters(const Graph& graph, const LongScatters& limits);

// Convolutions and pools run channels-last: permutes are inserted around them and pushed outward through
// elementwise ops, pads, windows, cat, reductions and takes until they meet and cancel.
// A convolution of few channels (an image's) reads its operand as it comes; one of one channel takes part for
// vectors of results, but in firmware, where borders of many channels take memory. One that has nothing to
// share the order with stays as it is, where its kernel can put the images that a row of results needs
// together: windows of one channel or of few.
struct StagedImages {
  int64_t largest_step = 1;  // of windows along rows
  int64_t most_bytes = 0;
  // Results of a pixel for which a product of bytes has its image put in another order; 0: none are enough.
  int64_t fewest_dot_columns = 0;
};
Expected<Graph> choose_channels_last(const Graph& graph, const StagedImages& images);

}  // namespace quernel
