// Nodes of several results (loops, branches, custom ops): their types. Loops and branches: their bodies as
// graphs to work on.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/build.h"
#include "graph/ir.h"

namespace quernel {

// What the value of a node of several results is: without elements, its results are read from it.
TensorType token_type();
// The iterations of a loop: its count, or the symbol that holds how many there were.
Dim iterations(const Control& control);
// Of a node that gives a token: how many results it has, and the type of result `k`.
size_t result_count(const Node& node);
TensorType result_type(const Node& node, size_t k);
// Whether a scan output of this type, of one iteration, shares no byte with that of the next: an even number of elements
// where two share a byte.
bool fills_bytes(const TensorType& type);
// Result `k` of the node whose token `token` is.
ValueId add_result(GraphBuilder& build, ValueId token, int64_t k);

// The values that run-time symbols are defined by in this graph: sources, and tokens of loops.
std::map<std::string, ValueId> symbol_definers(const Graph& graph);
// Loops and the later nodes that use their symbols: {token, node}. Such a loop is needed though nobody may
// read its results.
std::vector<std::pair<ValueId, int32_t>> uses_of_loop_symbols(const Graph& graph);

// The graph with each body of a node in it replaced by what `transform` makes of it.
Expected<Graph> transform_bodies(
    Graph graph, const std::function<Expected<Graph>(const Node& node, const Graph& body)>& transform);
// Whether `holds` is true of a node of the graph or of a body in it.
bool any_node(const Graph& graph, const std::function<bool(const Node&)>& holds);

}  // namespace quernel
