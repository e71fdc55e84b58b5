// Loops and branches: the types of their results, and their bodies as graphs to work on.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/build.h"
#include "graph/ir.h"

namespace quernel {

// What the value of a loop or branch is: without elements, its results are read from it.
TensorType token_type();
// The iterations of a loop: its count, or the symbol that holds how many there were.
Dim iterations(const Control& control);
// The types of all results of a loop or branch.
std::vector<TensorType> result_types(OpKind op, const Control& control);
// Result `k` of the loop or branch that `token` is.
ValueId add_result(GraphBuilder& build, ValueId token, int64_t k);

// The values that run-time symbols are defined by in this graph: sources, and tokens of loops.
std::map<std::string, ValueId> symbol_definers(const Graph& graph);
// Loops and the later nodes that use their symbols: {token, node}. Such a loop is needed though nobody may
// read its results.
std::vector<std::pair<ValueId, int32_t>> uses_of_loop_symbols(const Graph& graph);

// The graph with each body of its loops and branches replaced by what `transform` makes of it.
Expected<Graph> transform_bodies(Graph graph, const std::function<Expected<Graph>(const Graph&)>& transform);
// Whether `holds` is true of a node of the graph or of a body in it.
bool any_node(const Graph& graph, const std::function<bool(const Node&)>& holds);

}  // namespace quernel
