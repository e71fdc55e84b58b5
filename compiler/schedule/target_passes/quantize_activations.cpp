#include <algorithm>
#include <map>
#include <tuple>

#include "graph/rewrite.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/target_passes/bytes_of_activations.h"
#include "schedule/target_passes/target_passes.h"

namespace quernel::schedule {
Expected<Graph> quantize_activations(const Graph& graph, const Target& target, bool whole_rows,
                                     RoundedActivations* report) {
  std::map<std::tuple<ValueId, int64_t, int64_t>, ValueId>
      rounded;  // of the new graph, with groups and factors
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (!multiplies_quantised(r.old, node)) return kNoValue;
    const std::optional<QuantisedProduct> product = quantised_product(r.old, node);
    if (!product) {
      if (report) report->left.push_back(r.old.values[node.output].name);
      return kNoValue;
    }
    if (report) report->bits.insert(product->bits);
    ValueId operands[] = {r(node.inputs[0]), r(node.inputs[1])};
    ValueId& rows = operands[product->operand];
    const int64_t factor = factor_of_sums(target, product->bits);
    auto [it, is_new] = rounded.try_emplace({rows, product->group, factor}, kNoValue);
    if (is_new)
      it->second = whole_rows ? bytes_of_whole_rows(r.build, rows, product->group, factor)
                              : bytes_of_rows(r.build, rows, product->group, Digits{}, factor);
    rows = it->second;
    return r.build.contract(operands[0], operands[1], node.attributes.contraction);
  });
}

std::vector<std::string> about_activations(const RoundedActivations& report, const Target& target) {
  constexpr size_t kMostNamed = 4;
  const std::vector<std::string>& left = report.left;
  std::vector<std::string> notes;
  if (report.bits.empty() && left.empty())
    return {
        "no product has quantised weights, so no activations are rounded; --weights quantises those of "
        "floats"};
  if (!left.empty()) {
    std::string text =
        std::to_string(left.size()) + " products with quantised weights keep activations of f32:";
    for (size_t i = 0; i < std::min(left.size(), kMostNamed); ++i)
      text += (i == 0 ? " '" : ", '") + left[i] + "'";
    notes.push_back(text + (left.size() > kMostNamed ? ", ..." : "") +
                    "; they sum along several dims of theirs, or not along the last one");
  }
  for (int bits : report.bits)
    if (!multiplies_bytes(target, bits))
      notes.push_back("target " + target.name + " has no int8 dot product that weights of " +
                      std::to_string(bits) +
                      " bits suit: activations are rounded to i8, and multiplied as floats");
  return notes;
}

}  // namespace quernel::schedule
