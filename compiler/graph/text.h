// Text form of the graph IR. Printing and parsing are inverse: parse(print(g)) prints the same text.
//
//   symbol n min=1 max=64 multiple_of=8
//   graph @main(%x: f32[1,8], state %s: f32[2] = {0, 1}) {  // a state without data begins as zeros
//     %w = constant f32[2] {1, -0x1.8p+3}
//     %b = constant f32[512,512] <0102…>  // larger data: raw little-endian bytes; or {0.5 ...}, all equal
//     %1 = permute %x {1, 0} : f32[8,1]
//     %2 = contract %1, %w axes(m: 8, n: 4 | k: 1) a[m, k] b[k, n] out[m, n] acc f32 : f32[8,4]
//     return logits = %2, state %s = %w
//   }
#pragma once

#include <string>
#include <string_view>

#include "graph/ir.h"

namespace quernel {

// `elide_constants`: print "<N bytes>" for constants above this many elements (readable, not parseable); 0:
// never.
std::string print(const Graph& graph, int64_t elide_constants = 0);
// Elements of the largest constant that texts for people show.
inline constexpr int64_t kMostPrinted = 64;
Expected<Graph> parse_graph(std::string_view text, const std::string& file = {});

}  // namespace quernel
