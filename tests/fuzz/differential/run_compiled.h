// Runs a graph the way a user does: through the whole compiler, a bundle file and the runtime.
#pragma once

#include <string>
#include <vector>

#include "graph/ir.h"
#include "quernel/compiler.h"

namespace quernel::testing {

// Inputs and outputs in the order of the graph's. Failures of the runtime become diagnostics, too.
Expected<std::vector<Tensor>> run_compiled(const Graph& graph, const std::vector<Tensor>& inputs,
                                           const CompileOptions& options, unsigned threads);

// Where and by how much two tensors differ most beyond |got - want| <= atol + rtol |want|; empty when they
// agree. NaN equals NaN; infinities must match; integers and bool exactly.
std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol);

}  // namespace quernel::testing
