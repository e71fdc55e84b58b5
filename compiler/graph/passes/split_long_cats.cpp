#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {

Expected<Graph> split_long_cats(const Graph& graph, size_t most_operands) {
  return rewrite(graph, [&](Rewriter& r, const Node& node) {
    if (node.op != OpKind::k_cat || node.inputs.size() <= most_operands) return kNoValue;
    std::vector<ValueId> operands;
    for (ValueId v : node.inputs) operands.push_back(r(v));
    while (operands.size() > most_operands) {
      // Parts of equal size, but for one operand more or less.
      size_t count = (operands.size() + most_operands - 1) / most_operands;
      std::vector<ValueId> parts;
      for (size_t i = 0; i < count; ++i) {
        auto begin = operands.begin() + static_cast<std::ptrdiff_t>(operands.size() * i / count);
        auto end = operands.begin() + static_cast<std::ptrdiff_t>(operands.size() * (i + 1) / count);
        parts.push_back(r.build.cat({begin, end}, node.attributes.ints[0]));
      }
      operands = std::move(parts);
    }
    return r.build.cat(std::move(operands), node.attributes.ints[0]);
  });
}

}  // namespace quernel
