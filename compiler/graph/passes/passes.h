// The graph passes. Each returns a new graph that computes the same function.
// compiler/pipeline/pass_tables.cpp has the order in which they run.
#pragma once

#include <vector>

#include <functional>
#include <optional>

#include "graph/ir.h"

namespace quernel {

// The bytes of constants that fold_constants may still create. All calls on a graph, from its import to its
// kernels, share one budget, so a small graph never folds to gigabytes.
struct FoldBudget {
  std::optional<int64_t> left;  // nullopt: the first call decides, from the constants of its graph
};

// Contractions of dequantised 8-bit operands with constant weights become scaled integer contractions:
//   contract(mul(cast(sub(cast x, z)), s), mul(cast w, t)) -> mul(cast(add(contract(x, w), -z * sum w)), s*t)
// A division by the next scale joins this scale, through bias and clamps. Integer accumulators are exact. The
// scales are applied in another order, so results may differ in the last bits.
// `activations`: the dtype, i8 or u8, that operands of i8 weights are converted to; nullopt: unchanged.
// `folding`: the budget of fold_constants; null: a separate one.
Expected<Graph> form_integer_contractions(const Graph& graph, std::optional<DType> activations,
                                          FoldBudget* folding = nullptr);

// Nodes whose operands are all constants become constants, computed by the interpreter.
//   add(constant 1, constant 2) -> constant 3
// An expand of large data is not folded.
Expected<Graph> fold_constants(const Graph& graph);
// Takes the bytes of the results from `budget`; folds nothing when it is used up.
Expected<Graph> fold_constants(const Graph& graph, FoldBudget& budget);
// The same, except for nodes for which `keep` is true.
Expected<Graph> fold_constants(const Graph& graph, FoldBudget& budget,
                               const std::function<bool(const Graph&, const Node&)>& keep);

// Equal nodes (op, operands, attributes; constants by content) become one.
Expected<Graph> merge_common_subexpressions(const Graph& graph);

// Nodes that no output depends on disappear; inputs stay.
Expected<Graph> eliminate_dead_nodes(const Graph& graph);

// Applies identities: x+0, x*1, x*0 only if exact for the dtype, cast to the same type, double negation,
// where with a constant condition, relu(relu x), max/min chains with constants, pow(x, 2|0.5|1), div by a
// constant power of two, …
Expected<Graph> simplify_algebra(const Graph& graph);

// Chains of elementwise nodes from one 8-bit integer to another become tables, except chains of a few nodes:
//   cast(round(div(sigmoid(mul(cast x, s)), t))) : i8 -> take(constant : i8[256], bitcast x : u8)
Expected<Graph> form_byte_tables(const Graph& graph);

// Constants of 4 or 8 bits that elementwise nodes widen become dequantize nodes, where products of matrices, convolutions or
// takes read them; depthwise weights, which are few, become floats:
//   mul(cast(constant i8), scale) -> dequantize(constant i8, scale)
Expected<Graph> form_quantized_constants(const Graph& graph);

// dequantize nodes become other core ops, except constants that contractions alone read, which kernels widen
// themselves. Rows of a quantised value are taken as they are stored:
//   take(dequantize x, s {g}, i) -> mul(cast(take(x, i)), take(s, i))
Expected<Graph> expand_dequantize(const Graph& graph);

// Powers with common exponents become products and square roots, within 1.5 units in the last place:
//   pow(x, 3) -> mul(mul(x, x), x);  where x >= 0: pow(x, 0.75) -> mul(sqrt(x), sqrt(sqrt(x)))
Expected<Graph> expand_powers(const Graph& graph);

// Constant scales and shifts along output channels move into the weights of the contraction before them
// (batch-norm folding):
//   mul(contract(x, w), s) -> contract(x, w*s);  add(add(contract, b), t) -> add(contract, b+t)
// Products are reassociated, so results may differ in the last bits. Only for f32 and f64: scaled weights of
// narrower floats would be rounded again.
Expected<Graph> fold_scales_into_contractions(const Graph& graph);

// Large f32 constants that contractions and takes read are stored as `storage`, f16 or bf16, rounded to
// nearest. Results and arithmetic stay f32:
//   contract(x, w) -> contract(x, w');  take(w, i) -> cast(take(w', i))
// Constants that other nodes also read stay f32; so do constants with elements beyond a quarter of f16's
// range and, for bf16, weights of Winograd convolutions.
Expected<Graph> narrow_weights(const Graph& graph, DType storage);
// Returns the rounding error of all large f32 constants in `storage`: its root mean square divided by theirs.
double rounding_error(const std::vector<Graph>& graphs, DType storage);

// 64-bit products of widened 32-bit operands and different constants, as requantization by channel has them:
// constants that fit are stored in 32 bits.
//   mul(cast x : i64, constant i64[64]) -> mul(cast x : i64, cast(constant i32[64]) : i64)
Expected<Graph> narrow_multipliers(const Graph& graph);

// Shifts of words to the right by different constant counts, as requantization by channel has them: the counts are
// stored in bytes. So are the halves that round, if they are the same number of halves of the last place everywhere.
//   shr(x, constant i32[64]) -> shr(x, cast(constant i8[64]) : i32)
//   shr(add(x, constant i32[64] {n * 2^(s - 1)}), constant i32[64] {s})
//     -> shr(shr(add(x, shl(n, t)), t), 1), with t = cast(constant i8[64] {s - 1}) : i32
Expected<Graph> shrink_shifts(const Graph& graph);

// A contraction whose constant weights take more than `most_bytes` becomes several contractions, split along
// an axis of the result that the other operand lacks:
//   contract(x, w) -> cat(contract(x, w[.., 0:n]), contract(x, w[.., n:2n]), ..)
// Contractions without such an axis stay.
Expected<Graph> split_weights(const Graph& graph, int64_t most_bytes);

// Cats of more than `most_operands` operands become cats of cats, which are written in place. Requires
// `most_operands` >= 2.
//   cat(a, b, c, d) -> cat(cat(a, b), cat(c, d))
Expected<Graph> split_long_cats(const Graph& graph, size_t most_operands);

// Movement chains that a named op can express become that op; chains that move nothing disappear:
//   permute(permute(x, p), q) -> permute(x, p[q])
//   reshape(reshape(x)) -> reshape(x)
//   flip(flip(x, a), a) -> x
//   slice(slice), pad(pad) with one fill, slice(pad) inside or around the data, slice(cat) within one
//   operand, cat(cat)
// Permutes stay permutes, so layout passes recognise them.
Expected<Graph> canonicalize_movement(const Graph& graph);

// Simplifies the interfaces of loop and branch bodies. Constants and views that a body reads move into it.
// Operands that it does not read, carried values that never change, and unused results disappear.
Expected<Graph> simplify_control_flow(const Graph& graph);

// The nodes that `on_companion` marks become bodies of on_companion nodes, which a companion CPU runs. There
// are as few of these as the order of nodes allows. Constants move with their readers. `on_companion`: one
// flag per node.
//   add(contract(x, w), b), contract marked -> add(result(on_companion x { contract(x, w) }), b)
Expected<Graph> move_to_companion(const Graph& graph, const std::vector<char>& on_companion);

// The remaining movement chains with single uses become one view each if the composed map is affine:
//   flip(slice(permute(x))) -> view(x)
// Later passes no longer see which ops these were.
Expected<Graph> compose_views(const Graph& graph);

// Maxima and minima of large windows over two dims, neither the innermost, are computed in two steps, one dim
// after the other:
//   reduce_max(view [y + i, x + j, c] {i, j}) -> reduce_max(view(reduce_max(view [y, x + j, c] {j})) [y + i,
//   x, c] {i})
Expected<Graph> split_windows(const Graph& graph);

// A reduction of more elements than one workgroup should reduce becomes a reduction of parts, which
// workgroups share, and a reduction of the parts' results:
//   reduce_sum x {0} -> reduce_sum(reduce_sum(reshape x : [parts, n]) {1}) {0}
// Partial sums and products have the accumulator's dtype. The order of terms changes, but does not depend on
// the number of threads. Arg reductions, and reduced dims of run-time size, stay.
struct ReductionLimits {
  int64_t least_shared = 0;       // least elements of a reduction that is split for more workgroups
  int64_t enough_workgroups = 0;  // workgroups that are enough to share a kernel
  int64_t part_work = 0;          // elements of a part
  int64_t fewest_terms = 2;       // least terms of a part
  int64_t most_terms = 0;         // most terms of a result
  int64_t most_work = 0;          // most elements of a workgroup
  int64_t most_together = 0;      // most results that a workgroup computes side by side
  int64_t longest_row = 0;        // longest row along the last dim that may share a kernel with other stages
};
Expected<Graph> split_long_reductions(const Graph& graph, const ReductionLimits& limits);

// A contraction of more terms than one workgroup should add up becomes a sum of partial contractions:
//   contract %x, %w axes(m, n | k: 65536) -> reduce_sum(contract %x, %w axes(part: 4, m, n | k: 16384)) {0}
// If the partial results would take much memory, each part adds to the one before it. The order of terms
// changes, but does not depend on the number of threads.
struct ContractionLimits {
  int64_t most_terms = 0;      // most terms of a result in one part
  int64_t part_terms = 0;      // terms of a part
  int64_t longest_shared = 0;  // terms that always stay in one part, however few the results
  int64_t few_results = 0;     // results that too few workgroups compute
  int64_t least_shared = 0;    // least products of a contraction with few results that is split
  // Products with constants that have fewer results than this go in as many parts as reach it, of half busy_terms at least;
  // 0: none does.
  int64_t busy_results = 0, busy_terms = 0;
};
Expected<Graph> split_long_contractions(const Graph& graph, const ContractionLimits& limits);

// Long lines of scans, ArgMax and ArgMin, and of sorts that return a few elements, are split into blocks:
//   scan_sum x -> add(scan_sum(blocks), scan_sum(reduce_sum(blocks)))
//   argmax x -> argmax(best of each block)
//   argsort x, first k -> argsort(first k of each block), first k
// Alternatively into groups of few elements: the first k are in the k groups whose first elements sort before
// those of the other groups. A sort of long boolean lines becomes a scatter to places from running counts.
// The order of additions changes.
struct LongLines {
  static constexpr int64_t kLongest = int64_t{1} << 24;  // elements assumed of a line without a bound
  static constexpr double kManyLines = 8;                // lines that are enough to share the work
  bool by_bounds = false;                   // bounds of sizes decide, and many lines are split, too
  int64_t longest = 0, longest_sorted = 0;  // most elements of a line that stays whole
  int64_t block = 0, arg_block = 0, sorted_block = 0;  // elements of a block, about
  int64_t most_kept = 0;                               // most elements that a sort of blocks returns
  int64_t most_grouped = 0;                            // most that a sort of groups returns
};
Expected<Graph> split_long_lines(const Graph& graph, const LongLines& limits);

// Scatters of sums, maxima and minima with many updates per place are split into parts with a table each:
//   scatter_nd add %x, %i, %u : f32[100] -> add(%x, reduce_sum(scatter_nd add zeros: f32[parts, 100]) {0})
// The order of the terms of a sum changes, but does not depend on the number of threads.
struct LongScatters {
  bool columns_count = false;  // columns count as updates; scatters of many slices, which threads share, stay
  int64_t longest = 0;         // most updates of a slice that stay in one part
  int64_t part = 0;            // updates of a part,
  int64_t most_places = 1;     // or this many for each place
  int64_t free_parts = 0;      // parts if the number of updates is a run-time size; 0: not split
  int64_t most_results = 0;    // most elements of all tables in that case
};
Expected<Graph> split_long_scatters(const Graph& graph, const LongScatters& limits);

// Convolutions and pools run channels-last: permutes are inserted around them and pushed outward through
// elementwise ops, pads, windows, cat, reductions and takes until they meet and cancel. The operand of a
// convolution of few channels (an image) is read without a permute. A convolution of one channel takes part
// for the sake of vectors of results, except on bare metal, where borders of many channels take memory. A
// convolution without channels-last neighbours stays channels-first if its kernel can use an im2row buffer:
// windows of one channel, or of few.
// StagedImages: the limits of im2row buffers.
struct StagedImages {
  int64_t largest_step = 1;  // of windows along rows
  int64_t most_bytes = 0;    // of a buffer
  // Least results per pixel for which the operand of an int8 dot product is permuted; 0: never.
  int64_t fewest_dot_columns = 0;
};
Expected<Graph> choose_channels_last(const Graph& graph, const StagedImages& images);

}  // namespace quernel
