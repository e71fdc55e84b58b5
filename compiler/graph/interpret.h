// The interpreter: the oracle every compiled result is compared with. Simple scalar code, no sharing with
// lowering or code generation; floats are computed in f64 and rounded to the dtype after each op, integers in
// i64 with wrap-around.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/ir.h"

namespace quernel {

// What custom ops compute, by name: results of `op`'s types, whose shapes hold no symbols any more.
using CustomFunction = std::function<Expected<std::vector<Tensor>>(
    const CustomOp& op, const std::vector<const Tensor*>& operands)>;
using CustomFunctions = std::map<std::string, CustomFunction>;

// Runs the graph on inputs in the order of graph.inputs; returns outputs in the order of graph.outputs.
// Symbols take their values from the inputs' shapes, or from `bindings` where no input has them; inputs of
// another dtype or shape, and values outside a symbol's range, are invalid input. A custom op that `custom`
// does not have is unsupported.
Expected<std::vector<Tensor>> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                        std::map<std::string, int64_t> bindings = {},
                                        const CustomFunctions& custom = {});
// One node without symbols on given operands.
Expected<Tensor> interpret_node(const Graph& graph, const Node& node,
                                const std::vector<const Tensor*>& operands);

}  // namespace quernel
