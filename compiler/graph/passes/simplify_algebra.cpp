// Algebraic identities as a table of rules. Each rule is exact for the dtypes it fires on: the same bits for
// every operand, but for which NaN a NaN is. A rule sees one node with operands of the graph that is being
// built, so that the operands are simplified already, and what it returns is simplified again.
#include <algorithm>
#include <cmath>

#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/passes/simplify_rules.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

const SimplifyRule kRules[] = {
    {"constant_to_the_right", "add(1, x) -> add(x, 1);  lt(1, x) -> gt(x, 1)", constant_to_the_right},
    {"neutral_operand", "mul(x, 1) -> x;  add(x, 0) -> x for integers, add(x, -0.0) -> x for floats",
     neutral_operand},
    {"absorbing_operand", "mul(x, 0) -> 0 for integers;  and(x, false) -> false", absorbing_operand},
    {"equal_operands", "max(x, x) -> x;  sub(x, x) -> 0 for integers", equal_operands},
    {"subtract_constant", "sub(x, c) -> add(x, -c)", subtract_constant},
    {"divide_by_power_of_two", "div(x, 8) -> mul(x, 0.125)", divide_by_power_of_two},
    {"multiply_by_minus_one", "mul(x, -1) -> neg(x)", multiply_by_minus_one},
    {"join_constants", "max(max(x, 1), 2) -> max(x, 2);  add(add(x, 1), 2) -> add(x, 3) for integers",
     join_constants},
    {"unary_pair", "neg(neg(x)) -> x;  abs(neg(x)) -> abs(x);  floor(round(x)) -> round(x)", unary_pair},
    {"negated_comparison", "not(eq(a, b)) -> ne(a, b);  not(lt(a, b)) -> ge(a, b) for integers",
     negated_comparison},
    {"known_condition",
     "where(true, a, b) -> a;  where(c, a, a) -> a;  where(not(c), a, b) -> where(c, b, a)", known_condition},
    {"constant_power",
     "pow(x, 2) -> mul(x, x);  pow(x, 0.5) -> sqrt(x) where x >= 0;  pow(x, -1) -> recip(x)", constant_power},
    {"reciprocal", "div(1, x) -> recip(x)", reciprocal},
    {"redundant_cast", "cast(cast(x: f16, f32), f16) -> x;  cast(cast(x: u8, i32), f32) -> cast(x, f32)",
     redundant_cast},
    {"infinite_clamp", "clamp(x, -inf, inf) -> x", infinite_clamp},
    {"reduce_of_one", "reduce_sum over axes of size 1 -> reshape", reduce_of_one},
    {"expand_after", "add(expand(x), expand(y)) -> expand(add(x, y)) where fewer elements are computed",
     expand_after},
};
constexpr int kMaxSteps = 16;  // rules applied one after the other to one node

ValueId apply_first(const SimplifyMatch& match) {
  for (const SimplifyRule& rule : kRules)
    if (ValueId v = rule.apply(match); v != kNoValue || !match.build.ok()) return v;
  return kNoValue;
}

ValueId simplify_node(Rewriter& r, const Node& node) {
  std::vector<ValueId> inputs;
  for (ValueId v : node.inputs) inputs.push_back(r(v));
  auto before = static_cast<ValueId>(r.graph.values.size());
  ValueId result = apply_first({r.build, node.op, inputs, node.attributes, r.old.type(node.output)});
  for (int step = 1; step < kMaxSteps && result >= before; ++step) {
    Node made = *r.graph.def(result);  // a copy: rules append to the graph
    TensorType type = r.graph.type(result);
    before = static_cast<ValueId>(r.graph.values.size());
    ValueId next = apply_first({r.build, made.op, made.inputs, made.attributes, type});
    if (next == kNoValue) break;
    result = next;
  }
  return result;
}

}  // namespace

Expected<Graph> simplify_algebra(const Graph& graph) {
  QUERNEL_TRY(Graph simplified, rewrite(graph, simplify_node));
  return rewrite(simplified,
                 [](Rewriter&, const Node&) { return kNoValue; });  // drops what rules stepped over
}

}  // namespace quernel
