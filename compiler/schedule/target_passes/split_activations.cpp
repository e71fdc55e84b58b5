#include <algorithm>
#include <map>
#include <tuple>

#include "graph/quantized.h"
#include "graph/rewrite.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/target_passes/bytes_of_activations.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel::schedule {
namespace {

// More rows: a panel is widened once for all of them, and takes as many multiply-adds of floats as dot products of digits.
constexpr int64_t kMostRows = 4;
// The same where a dot product takes two instructions: 19 instead of 25 for eight steps of one row, 34 instead of 33 of two.
constexpr int64_t kMostRowsInHalves = 1;
// Of base 252 each digit is in [-127, 127], however the units that are whole numbers of it were rounded: at most 126 for the
// rounding, one for that of the quotient. 126 * 252^2 is above 8,000,000.
constexpr Digits kDigits{.count = 3, .base = 252, .most = 8e6};

// Whether a kernel can multiply the product's words by bytes, with activations stored as rows.
bool multiplies_words(const Graph& graph, const Node& node, const QuantisedProduct& product,
                      const Target& target) {
  const Contraction& c = node.attributes.contraction;
  OperandStrides strides[2];
  for (int i : {0, 1}) {
    OperandAccess access = resolve_operand(graph, node, i);
    if (i == product.operand) {
      access = {node.inputs[static_cast<size_t>(i)], i == 0 ? c.a : c.b};
      access.affine = true;
    }
    Shape dims = graph.shape(access.base);
    if (i == product.operand) dims.back() = ceildiv(dims.back(), product.group) * product.group;
    strides[i] = operand_strides(graph, access, contiguous_strides(dims), 0, c.axes.size());
  }
  OperandStrides& rows = strides[product.operand];
  rows.group_of_bytes = product.group, rows.digits = kDigits.count;
  const ContractionPlan plan = plan_contraction(c, strides[0], strides[1], target);
  return plan.blocks && plan.blocks->group_of_a != 0;
}

bool is_worth_it(const Node& node, const QuantisedProduct& product, const Target& target,
                 int64_t least_weights) {
  const Contraction& c = node.attributes.contraction;
  const std::vector<IndexExpr>& map = product.operand == 0 ? c.a : c.b;
  Dim rows = 1, weights = 1;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    const bool of_rows = std::any_of(map.begin(), map.end(),
                                     [&](const IndexExpr& e) { return uses_axis(e, static_cast<int>(i)); });
    (of_rows && !c.axes[i].reduction ? rows : weights) *= c.axes[i].extent;
  }
  return rows.is_const() && weights.is_const() && rows.value() <= most_rows_of_digits(target, product.bits) &&
         weights.value() >= least_weights;
}

}  // namespace

int64_t most_rows_of_digits(const Target& target, int bits) {
  if (!multiplies_bytes(target, bits)) return 0;
  return words_in_halves(target, bits) > 0 ? kMostRowsInHalves : kMostRows;
}

Expected<Graph> split_activations(const Graph& graph, const Target& target, int64_t least_weights) {
  constexpr int kFewestBits = 2;  // a target that does not multiply them multiplies no others
  if (!multiplies_bytes(target, kFewestBits)) return graph;
  std::map<std::tuple<ValueId, int64_t, int64_t>, ValueId>
      split;  // of the new graph, with groups and factors
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    const std::optional<QuantisedProduct> product = quantised_product(r.old, node);
    if (!product || !is_worth_it(node, *product, target, least_weights) ||
        !multiplies_words(r.old, node, *product, target))
      return kNoValue;
    ValueId operands[] = {r(node.inputs[0]), r(node.inputs[1])};
    ValueId& rows = operands[product->operand];
    const int64_t factor = factor_of_sums(target, product->bits);
    auto [it, is_new] = split.try_emplace({rows, product->group, factor}, kNoValue);
    if (is_new) it->second = bytes_of_rows(r.build, rows, product->group, kDigits, factor);
    rows = it->second;
    return r.build.contract(operands[0], operands[1], node.attributes.contraction);
  });
}

}  // namespace quernel::schedule
