// Softmax between two products of activations, as graphs, and the kernels that they become.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/text.h"
#include "pipeline/pipeline.h"
#include "pipeline/run_passes.h"

namespace quernel::testing {

struct AttentionCase {
  int64_t batch, heads, rows, keys, depth, width;
  bool mask;
  bool heads_last;  // operands and result are [batch, position, head, element]
  bool free_batch = false, free_rows = false;
  // How weights come of exponentials: by a division, by the reciprocal of the sum, or by a division after
  // which rows without a finite score have none.
  enum Softmax { kDivision, kReciprocal, kHiddenIsZero } softmax = kDivision;
  bool free_keys = false;
};

inline std::string attention_text(const AttentionCase& c) {
  auto s = [](int64_t v) { return std::to_string(v); };
  std::string b = c.free_batch ? "B" : s(c.batch), n = c.free_rows ? "N" : s(c.rows), h = s(c.heads),
              m = c.free_keys ? "M" : s(c.keys);
  auto dims = [&](const std::string& positions, int64_t last) {
    return "f32[" + b + "," + (c.heads_last ? positions + "," + h : h + "," + positions) + "," + s(last) +
           "]";
  };
  auto at = [&](const char* position, const char* last) {
    return std::string("[b, ") +
           (c.heads_last ? std::string(position) + ", h" : std::string("h, ") + position) + ", " + last + "]";
  };
  std::string scores = "f32[" + b + "," + h + "," + n + "," + m + "]";
  std::string row = "f32[" + b + "," + h + "," + n + ",1]";
  std::string text;
  if (c.free_batch) text += "symbol B min=1 max=8\n";
  if (c.free_rows) text += "symbol N min=1 max=64\n";
  if (c.free_keys) text += "symbol M min=0 max=4096\n";
  text += "graph @g(%q: " + dims(n, c.depth) + ", %k: " + dims(m, c.depth) + ", %v: " + dims(m, c.width) +
          ", %m: f32[" + b + ",1,1," + m + "])";
  std::string common = "b: " + b + ", h: " + h + ", n: " + n;
  text += " {\n  %s = contract %q, %k axes(" + common + ", m: " + m + " | d: " + s(c.depth) + ") a" +
          at("n", "d") + " b" + at("m", "d") + " out[b, h, n, m] acc f32 : " + scores + "\n";
  text += "  %f = constant f32[1,1,1,1] {0.25}\n  %fe = expand %f : " + scores +
          "\n  %t = mul %s, %fe : " + scores + "\n";
  if (c.mask) text += "  %me = expand %m : " + scores + "\n  %u = add %t, %me : " + scores + "\n";
  // A row's value `n` with `to` in its place where it is `from`.
  auto replaced = [&](const std::string& n, const char* from, const char* to) {
    return "  %" + n + "0 = constant f32[1,1,1,1] {" + from + "}\n  %" + n + "1 = expand %" + n +
           "0 : " + row + "\n  %" + n + "2 = eq %" + n + ", %" + n + "1 : bool" + row.substr(3) + "\n  %" +
           n + "3 = constant f32[1,1,1,1] {" + to + "}\n  %" + n + "4 = expand %" + n + "3 : " + row +
           "\n  %" + n + "r = where %" + n + "2, %" + n + "4, %" + n + " : " + row + "\n";
  };
  bool hides = c.softmax == AttentionCase::kHiddenIsZero;
  std::string x = c.mask ? "%u" : "%t", top = hides ? "%ar" : "%a", sum = hides ? "%zr" : "%z";
  text += "  %a = reduce_max " + x + " {3} keepdims : " + row + "\n";
  if (hides) text += replaced("a", "-inf", "0");
  text += "  %ae = expand " + top + " : " + scores + "\n";
  text += "  %c = sub " + x + ", %ae : " + scores + "\n  %e = exp %c : " + scores + "\n";
  text += "  %z = reduce_sum %e {3} keepdims acc f32 : " + row + "\n";
  if (hides) text += replaced("z", "0", "1");
  bool reciprocal = c.softmax == AttentionCase::kReciprocal;
  if (reciprocal) text += "  %zr = recip %z : " + row + "\n", sum = "%zr";
  text += "  %ze = expand " + sum + " : " + scores + "\n";
  text += std::string("  %p = ") + (reciprocal ? "mul" : "div") + " %e, %ze : " + scores + "\n";
  text += "  %y = contract %p, %v axes(" + common + ", e: " + s(c.width) + " | m: " + m +
          ") a[b, h, n, m] b" + at("m", "e") + " out" + at("n", "e") + " acc f32 : " + dims(n, c.width) +
          "\n";
  return text + "  %g = abs %y : " + dims(n, c.width) + "\n  return y = %y, g = %g\n}\n";
}

// Kinds of the kernels, copies of operands aside.
inline std::vector<std::string> kernels_of(const Graph& graph, const Expected<Target>& target) {
  Expected<Graph> ready = run_graph_passes(graph, *target, {});
  EXPECT_TRUE(ready) << to_string(ready.errors());
  schedule::Packings packings;
  Expected<schedule::Schedule> schedule = make_schedule(std::move(*ready), *target, packings);
  EXPECT_TRUE(schedule) << to_string(schedule.errors());
  std::vector<std::string> kinds;
  for (const schedule::Group& group : schedule->groups)
    if (schedule->graph.nodes[group.anchor].op != OpKind::k_contiguous)
      kinds.push_back((group.stream ? "streamed " : "") + std::string(to_string(group.kind)) +
                      (group.block_keys != 0 ? " in parts" : ""));
  return kinds;
}

}  // namespace quernel::testing
