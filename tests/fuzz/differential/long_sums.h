// Sums of so many terms that chains of f32 additions would be far off, and how far off they may be.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "graph/interpret.h"
#include "graph/text.h"
#include "join_graphs.h"

namespace quernel::testing {

// One sum of products, or of an input: linear in each of the inputs.
struct SumCase {
  const char* name;
  const char* text;
  std::map<std::string, int64_t> symbols = {};
};

inline const SumCase kSumCases[] = {
    {"all", "graph @g(%x: f32[300000]) {\n  %y = reduce_sum %x {0} acc f32 : f32[]\n  return y = %y\n}\n"},
    {"prime", "graph @g(%x: f32[300007]) {\n  %y = reduce_sum %x {0} acc f32 : f32[]\n  return y = %y\n}\n"},
    {"columns",
     "graph @g(%x: f32[100000,5]) {\n  %y = reduce_sum %x {0} acc f32 : f32[5]\n  return y = %y\n}\n"},
    {"whole_vectors",
     "graph @g(%x: f32[20000,16]) {\n  %y = reduce_sum %x {0} acc f32 : f32[16]\n  return y = %y\n}\n"},
    {"middle",
     "graph @g(%x: f32[2,40000,4]) {\n  %y = reduce_sum %x {1} keepdims acc f32 : f32[2,1,4]\n"
     "  return y = %y\n}\n"},
    {"channels",
     "graph @g(%x: f32[3,8,120,100]) {\n  %y = reduce_sum %x {0, 2, 3} acc f32 : f32[8]\n"
     "  return y = %y\n}\n"},
    {"images",
     "graph @g(%x: f32[1,16,180,200]) {\n  %y = reduce_sum %x {2, 3} keepdims acc f32 : f32[1,16,1,1]\n"
     "  return y = %y\n}\n"},
    {"rows",
     "graph @g(%x: f32[10,65536]) {\n  %y = reduce_sum %x {1} keepdims acc f32 : f32[10,1]\n"
     "  %e = expand %y : f32[10,65536]\n  %z = slice %e [0:10, 0:3] : f32[10,3]\n  return z = %z\n}\n"},
    {"free",
     "symbol n min=1\n"
     "graph @g(%x: f32[n]) {\n  %y = reduce_sum %x {0} acc f32 : f32[]\n  return y = %y\n}\n",
     {{"n", 300011}}},
    {"free_columns",
     "symbol m min=1\n"
     "graph @g(%x: f32[m,7]) {\n  %y = reduce_sum %x {0} acc f32 : f32[7]\n  return y = %y\n}\n",
     {{"m", 50001}}},
    {"free_images",
     "symbol h min=1\nsymbol w min=1\n"
     "graph @g(%x: f32[2,h,w]) {\n  %y = reduce_sum %x {1, 2} acc f32 : f32[2]\n  return y = %y\n}\n",
     {{"h", 500}, {"w", 301}}},
    {"product",
     "graph @g(%a: f32[3,65536], %b: f32[65536,9]) {\n"
     "  %y = contract %a, %b axes(m: 3, n: 9 | k: 65536) a[m, k] b[k, n] out[m, n] acc f32 : f32[3,9]\n"
     "  return y = %y\n}\n"},
    {"odd_product",
     "graph @g(%a: f32[2,40009], %b: f32[17,40009]) {\n"
     "  %y = contract %a, %b axes(m: 2, n: 17 | k: 40009) a[m, k] b[n, k] out[m, n] acc f32 : f32[2,17]\n"
     "  return y = %y\n}\n"},
    {"dot",
     "graph @g(%a: f32[262144], %b: f32[262144]) {\n"
     "  %y = contract %a, %b axes(| k: 262144) a[k] b[k] out[] acc f32 : f32[]\n  return y = %y\n}\n"},
    {"batched",
     "graph @g(%a: f32[3,20000,2], %b: f32[3,20000,4]) {\n"
     "  %y = contract %a, %b axes(g: 3, m: 2, n: 4 | k: 20000) a[g, k, m] b[g, k, n] out[g, m, n] acc f32 : "
     "f32[3,2,4]\n  return y = %y\n}\n"},
    {"convolution",
     "graph @g(%x: f32[1,2048,5,5], %w: f32[3,2048,3,3]) {\n"
     "  %y = contract %x, %w axes(n: 1, o: 3, y: 3, x: 3 | c: 2048, ky: 3, kx: 3) a[n, c, y + ky, x + kx] "
     "b[o, c, ky, kx] out[n, o, y, x] acc f32 : f32[1,3,3,3]\n  return y = %y\n}\n"},
    {"free_product",
     "symbol k min=1\n"
     "graph @g(%a: f32[3,k], %b: f32[k,8]) {\n"
     "  %y = contract %a, %b axes(m: 3, n: 8 | k: k) a[m, k] b[k, n] out[m, n] acc f32 : f32[3,8]\n"
     "  return y = %y\n}\n",
     {{"k", 60001}}},
};

inline Graph graph_of(const SumCase& c) {
  Expected<Graph> graph = parse_graph(c.text);
  EXPECT_TRUE(graph) << c.name << ": " << to_string(graph.errors());
  return *graph;
}

enum class Terms { kTenths, kMixed };  // all 0.1; of both signs, with a large mean

inline std::vector<Tensor> inputs_of(const Graph& graph, const SumCase& c, Terms kind) {
  std::vector<Tensor> inputs;
  uint32_t state = 1;
  for (ValueId v : graph.inputs) {
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (const Dim& d : graph.shape(v)) dims.push_back(*d.evaluate(c.symbols)), count *= dims.back();
    std::vector<float> values(static_cast<size_t>(count), 0.1f);
    if (kind == Terms::kMixed)
      for (float& value : values) {
        state = state * 1664525 + 1013904223;
        value = 3.7f + 8 * (static_cast<float>(state >> 8) / (1 << 24) - 0.5f);
      }
    inputs.push_back(f32_tensor(std::move(dims), values));
  }
  return inputs;
}

// compiler/lower/README.md: the share of the sum of the terms' magnitudes.
inline constexpr double kSumBound = 1600 * 0x1p-24;

// The case's one result, and what it may be off by at most.
struct BoundedSums {
  Tensor want;
  std::vector<double> bounds;  // of each element
};
inline BoundedSums bounded_sums(const Graph& graph, const SumCase& c, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> magnitudes;
  for (const Tensor& x : inputs) {
    std::vector<float> values;
    for (int64_t i = 0; i < x.count(); ++i) values.push_back(std::fabs(x.at<float>(i)));
    magnitudes.push_back(f32_tensor(x.dims, values));
  }
  Expected<std::vector<Tensor>> want = interpret(graph, inputs, c.symbols),
                                most = interpret(graph, magnitudes, c.symbols);
  EXPECT_TRUE(want && most) << c.name;
  BoundedSums sums{(*want)[0], {}};
  for (int64_t i = 0; i < sums.want.count(); ++i) sums.bounds.push_back(kSumBound * (*most)[0].at<float>(i));
  return sums;
}
inline void expect_within_bounds(const Tensor& got, const BoundedSums& sums) {
  ASSERT_EQ(got.dims, sums.want.dims);
  for (int64_t i = 0; i < got.count(); ++i)
    EXPECT_NEAR(got.at<float>(i), sums.want.at<float>(i), sums.bounds[static_cast<size_t>(i)])
        << "element " << i;
}

// All cases side by side, so that they are compiled at once.
struct AllSums {
  explicit AllSums(Terms kind) {
    for (const SumCase& c : kSumCases) {
      const Graph graph = graph_of(c);
      std::vector<Tensor> own = inputs_of(graph, c, kind);
      sums.push_back(bounded_sums(graph, c, own));
      join(all, graph, std::string(c.name) + "_");
      inputs.insert(inputs.end(), own.begin(), own.end());
    }
  }
  Graph all;
  std::vector<Tensor> inputs;
  std::vector<BoundedSums> sums;  // of each output

  void expect(const std::vector<Tensor>& got) const {
    ASSERT_EQ(got.size(), sums.size());
    for (size_t i = 0; i < got.size(); ++i) {
      SCOPED_TRACE(kSumCases[i].name);
      expect_within_bounds(got[i], sums[i]);
    }
  }
};

}  // namespace quernel::testing
