// The largest magnitude of a row, whose bits are compared: as floats compare, NaN above all, in kernels of one reduction and of
// several stages over rows.
#include <gtest/gtest.h>

#include <limits>

#include "graph/text.h"
#include "on_host_targets.h"

namespace quernel::testing {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Magnitudes, the_largest_of_rows_with_zeros_infinities_and_nans) {
  const std::vector<std::string> texts = {
      R"(graph @g(%x: f32[6,35]) {
    %a = abs %x : f32[6,35]
    %y = reduce_max %a {1} : f32[6]
    return y = %y
  })",
      R"(graph @g(%x: f32[6,35]) {
    %a = abs %x : f32[6,35]
    %m = reduce_max %a {1} : f32[6]
    %r = reshape %m : f32[6,1]
    %e = expand %r : f32[6,35]
    %y = div %x, %e : f32[6,35]
    return y = %y
  })"};
  std::vector<float> rows(6 * 35);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i * 37 % 101) - 50;
  std::fill_n(rows.begin(), 35, -0.0F);         // zeros
  std::fill_n(rows.begin() + 35, 35, -1e-42F);  // no normal numbers
  rows[2 * 35 + 34] = -kInf;                    // in the tail
  rows[3 * 35 + 3] = kNan, rows[3 * 35 + 9] = kInf;
  rows[4 * 35 + 33] = -kNan;
  const std::vector<Tensor> inputs{f32_tensor({6, 35}, rows)};
  for (const std::string& text : texts) {
    Expected<Graph> graph = parse_graph(text);
    ASSERT_TRUE(graph) << to_string(graph.errors());
    Expected<std::vector<Tensor>> want = interpret(*graph, inputs);
    ASSERT_TRUE(want) << to_string(want.errors());
    for (const std::string& target : host_targets())
      expect_on_target(*graph, inputs, *want, target, 1e-6, 0, text);
  }
}

}  // namespace
}  // namespace quernel::testing
