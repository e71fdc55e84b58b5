// The text form: what is printed, and that printing and parsing are inverse.
#include <gmock/gmock.h>

#include "graph/build.h"
#include "graph_testing.h"
#include "random_graph/random_graph.h"

namespace quernel {
namespace {

void expect_round_trip(const Graph& graph) {
  std::string text = print(graph);
  Expected<Graph> parsed = parse_graph(text);
  ASSERT_TRUE(parsed) << to_string(parsed.errors()) << text;
  EXPECT_EQ(print(*parsed), text);
  Status status = verify(*parsed);
  EXPECT_TRUE(status) << to_string(status.errors());
}

TEST(GraphText, every_construct) {
  const std::string text = R"(symbol n min=1 max=64 multiple_of=8
symbol "seq len" min=0
graph @main(%x: f32[1,8], %y: f32[n,4], %z: f16[(n + 1),"seq len",min(n, 4)], %i: i64[3]) {
  %w = constant f32[2] {1, -12}
  %big = constant f64[4] {0.1, 1e+300, inf, nan}
  %s = constant f32[] {bits(0x7fc00001)}
  %1 = permute %x {1, 0} : f32[8,1]
  %2 = slice %x [0:1, 1:7:2] : f32[1,3]
  %3 = pad %2 [1:1, 0:2] fill -inf : f32[3,5]
  %4 = pad %2 [0:0, 2:2] reflect : f32[1,7]
  %5 = view %x [0, 2*d0 + d1 + -1] if 0 <= 2*d0 + d1 + -1 < 8 fill 0.5 : f32[4,3]
  %6 = reduce_sum %5 {1} keepdims acc f64 : f32[4,1]
  %7 = reduce_argmax %5 {0} last : i32[3]
  %8 = contract %x, %1 axes(m: 1, n: 1 | k: 8) a[m, k] b[k, n] out[m, n] acc f32 : f32[1,1]
  %9 = take %x, %i {1} : f32[1,3]
  %"odd name" = cat %2, %9 {0} : f32[2,3]
  %10 = cast %"odd name" : bool[2,3]
  %11 = slice %y [0:(n floordiv 2), 0:4] : f32[((((n floordiv 2) - 0) + 0) floordiv 1),4]
  %12 = scan_sum %y {0} exclusive reverse acc f64 : f32[n,4]
  %13 = argsort %y {1} descending : i64[n,3]
  %14 = argsort %y {0} : i64[n,4]
  %15 = scatter_rows %x, %i, %9 {1} add unique : f32[1,8]
  return a = %3, b = %4, c = %6, d = %7, e = %8, f = %10
}
)";
  Expected<Graph> graph = parse_graph(text);
  ASSERT_TRUE(graph) << to_string(graph.errors());
  std::string expected = text;
  size_t folded = expected.find("((((n floordiv 2) - 0) + 0) floordiv 1)");
  expected.replace(folded, std::string("((((n floordiv 2) - 0) + 0) floordiv 1)").size(), "(n floordiv 2)");
  // A multiple of 8 is told in eighths.
  for (size_t at = 0; (at = expected.find("(n floordiv 2)", at)) != std::string::npos;)
    expected.replace(at, std::string("(n floordiv 2)").size(), "((n floordiv 8) * 4)");
  EXPECT_EQ(print(*graph), expected);
}

TEST(GraphText, constants_of_every_dtype) {
  for (int i = 0; i < kDTypeCount; ++i) {
    Random random(static_cast<uint64_t>(i) + 1);
    for (int64_t count : {0, 1, 7, 200}) {
      Graph graph;
      GraphBuilder build(graph);
      Tensor tensor = random_tensor(static_cast<DType>(i), {count}, random);
      graph.outputs.push_back({"y", build.constant(tensor)});
      ASSERT_TRUE(build.ok());
      expect_round_trip(graph);
      EXPECT_TRUE(same_tensor(*graph_of(print(graph)).constant(0), tensor)) << print(graph);
    }
  }
}

TEST(GraphText, every_bit_pattern_of_the_8_bit_floats) {
  for (DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (int bits = 0; bits < 256; ++bits) {
      Graph graph;
      GraphBuilder build(graph);
      graph.outputs.push_back(
          {"y", build.constant(make_tensor<uint8_t>(dtype, {1}, {static_cast<uint8_t>(bits)}))});
      EXPECT_EQ(graph_of(print(graph)).constant(0)->bytes.data()[0], bits) << print(graph);
    }
  }
}

TEST(GraphText, every_bit_pattern_of_f16) {
  std::vector<uint16_t> bits(65536);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    for (size_t first = 0; first < bits.size(); first += 64) {
      Graph graph;
      GraphBuilder build(graph);
      std::vector<uint16_t> part(bits.begin() + static_cast<long>(first),
                                 bits.begin() + static_cast<long>(first) + 64);
      graph.outputs.push_back({"y", build.constant(make_tensor(dtype, {64}, part))});
      Graph parsed = graph_of(print(graph));
      ASSERT_EQ(std::memcmp(parsed.constant(0)->bytes.data(), part.data(), 128), 0) << print(graph);
    }
  }
}

TEST(GraphText, elides_long_constants_on_request) {
  Graph graph;
  GraphBuilder build(graph);
  Random random(1);
  graph.outputs.push_back({"y", build.constant(random_tensor(DType::kF32, {100}, random))});
  EXPECT_THAT(print(graph, 10), testing::HasSubstr("%1 = constant f32[100] <400 bytes>"));
}

TEST(GraphText, random_graphs_round_trip) {
  for (uint64_t seed = 1; seed <= 300; ++seed) expect_round_trip(random_graph(seed));
}

// Texts cut short or with one byte changed give a diagnostic or a valid graph, and never more than that.
TEST(GraphText, damaged_texts_are_refused_or_valid) {
  Random random(7);
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::string text = print(random_graph(seed));
    for (int i = 0; i < 50; ++i) {
      std::string damaged = text;
      size_t at = static_cast<size_t>(random.below(static_cast<int64_t>(text.size())));
      if (random.chance(30))
        damaged.resize(at);
      else
        damaged[at] = "(){}[]<>:,%=|@\"0917adnx. \n-"[random.below(27)];
      Expected<Graph> graph = parse_graph(damaged);
      if (graph) {
        EXPECT_TRUE(verify(*graph)) << damaged;
      }
    }
  }
}

// ---- seed traps ----
TEST(SeedTraps, symbol_nested) {
  Expected<Graph> graph =
      parse_graph("symbol n min=1 max=8\ngraph @g(%x: f32[((n * 2) + 1)]) {\n return y = %x\n}");
  ASSERT_TRUE(graph) << to_string(graph.errors());
  std::vector<Symbol> symbols;
  graph->shape(0)[0].collect_symbols(symbols);
  ASSERT_EQ(symbols.size(), 1u);
  EXPECT_EQ(symbols[0].name, "n");
  EXPECT_EQ(symbols[0].max, 8);
  EXPECT_EQ(graph->shape(0)[0].evaluate({{"n", 3}}), 7);
}

TEST(SeedTraps, symbol_bounds_arithmetic) {
  Dim n = Dim::symbol({"n", 2, 5, 1, false, {}}), m = Dim::symbol({"m", 3, 4, 1, false, {}});
  using Bounds = std::pair<int64_t, int64_t>;
  auto bounds = [&](const Dim& d) { return Bounds(d.bounds().lo, d.bounds().hi); };
  EXPECT_EQ(bounds(Dim(0) - n), Bounds(-5, -2));
  EXPECT_EQ(bounds(n * m), Bounds(6, 20));
  EXPECT_EQ(bounds((Dim(0) - n) * m), Bounds(-20, -6));
  EXPECT_EQ(bounds(m - n * Dim(2)), Bounds(-7, 0));
  EXPECT_EQ(bounds(floordiv(n, Dim(2))), Bounds(1, 2));
}

}  // namespace
}  // namespace quernel
