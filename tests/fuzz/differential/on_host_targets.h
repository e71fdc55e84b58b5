// A graph against the interpreter, on every target that this machine runs, with one and two threads.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "graph/interpret.h"
#include "graph/text.h"
#include "host_targets.h"
#include "random_graph/random_graph.h"
#include "run_compiled.h"

namespace quernel::testing {

// -> the largest error, as a share of the largest result; each has to stay below `bound`.
inline double error_on_host_targets(const std::string& text, double bound) {
  Expected<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph) << to_string(graph.errors());
  if (!graph) return 0;
  std::vector<Tensor> inputs = random_inputs(*graph, 3);
  Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
  EXPECT_TRUE(want) << to_string(want.errors());
  double worst = 0;
  for (const std::string& target : want ? host_targets() : std::vector<std::string>())
    for (unsigned threads : {1u, 2u}) {
      CompileOptions options;
      options.targets = {target};
      Expected<std::vector<Tensor>> got = run_compiled(*graph, inputs, options, threads);
      EXPECT_TRUE(got) << to_string(got.errors());
      if (!got) continue;
      double error = largest_error(*got, *want);
      worst = std::max(worst, error);
      EXPECT_LT(error, bound) << target << ", " << threads << " threads\n" << print(*graph, 8);
    }
  return worst;
}

// Expects what the interpreter gives, `want`, of compiled code for that target, with one and two threads.
inline void expect_on_target(const Graph& graph, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& want, const std::string& target, double rtol,
                             double atol, const std::string& what) {
  for (unsigned threads : {1u, 2u}) {
    CompileOptions options;
    options.targets = {target};
    Expected<std::vector<Tensor>> got = run_compiled(graph, inputs, options, threads);
    ASSERT_TRUE(got) << to_string(got.errors());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(difference((*got)[i], want[i], rtol, atol), "")
          << target << ", " << threads << " threads, " << what;
  }
}

}  // namespace quernel::testing
