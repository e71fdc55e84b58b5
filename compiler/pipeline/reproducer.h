// Reproducers: when a pass breaks an invariant, what it was given is written as a golden test. Renamed and moved to
// tests/golden, the file is a test that fails until the defect is mended.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir.h"
#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel {

// The text of a golden test with this graph as input. `key`: "pass" for a pass over graphs, "stage" for a step of
// scheduling or "lower". Large constants become one value repeated, so that the
// file holds no weights.
std::string graph_reproducer(std::string_view key, std::string_view stage, const Graph& graph,
                             const Target& target);

// The same of a loop pass. `text`: its kernel, or all of them.
std::string loop_reproducer(std::string_view pass, std::string_view name, const std::string& text);

// The text of a golden test of generated code, a case for each kernel. `language`: "llvm" or "glsl".
std::string code_reproducer(const std::vector<loop::Kernel>& kernels, std::string_view language,
                            const std::string& target);

// Runs `work`. If it returns an internal error, or ends the process by one, writes `text()` to the file
// quernel-<stage>.test in `dir` (empty: the current directory), and names it on stderr.
Status with_reproducer(const std::string& dir, std::string_view stage,
                       const std::function<std::string()>& text, const std::function<Status()>& work);

}  // namespace quernel
