// Index expressions: simplification keeps every value, and symbolic dims keep their bounds.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "graph/dim.h"
#include "graph/index_map.h"

namespace quernel {
namespace {

TEST(IndexExpr, SimplificationKeepsEveryValue) {
  std::mt19937 random(1);
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 2000; ++round) {
    std::vector<int64_t> extents{1 + pick(7), 1 + pick(5), 1 + pick(4)};
    std::vector<IndexExpr> pool;
    for (int i = 0; i < 3; ++i) pool.push_back(IndexExpr::axis(i));
    // Each expression with its value computed on the side, at every point.
    std::vector<std::vector<int64_t>> values(3);
    std::vector<std::array<int64_t, 3>> points;
    for (int64_t a = 0; a < extents[0]; ++a)
      for (int64_t b = 0; b < extents[1]; ++b)
        for (int64_t c = 0; c < extents[2]; ++c) points.push_back({a, b, c});
    for (const auto& p : points)
      for (int i = 0; i < 3; ++i) values[i].push_back(p[i]);
    for (int step = 0; step < 6; ++step) {
      int x = pick(static_cast<int>(pool.size())), y = pick(static_cast<int>(pool.size()));
      int64_t c = 1 + pick(6);
      std::vector<int64_t> result;
      auto floor_div = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
      switch (pick(5)) {
        case 0:
          pool.push_back(pool[x] + pool[y]);
          for (size_t p = 0; p < points.size(); ++p) result.push_back(values[x][p] + values[y][p]);
          break;
        case 1:
          pool.push_back(pool[x] * (c - 3));
          for (int64_t v : values[x]) result.push_back(v * (c - 3));
          break;
        case 2:
          pool.push_back(floordiv(pool[x], c));
          for (int64_t v : values[x]) result.push_back(floor_div(v, c));
          break;
        case 3:
          pool.push_back(floormod(pool[x], c));
          for (int64_t v : values[x]) result.push_back(v - floor_div(v, c) * c);
          break;
        default:
          pool.push_back(pool[x] + (c - 4));
          for (int64_t v : values[x]) result.push_back(v + c - 4);
          break;
      }
      values.push_back(result);
      IndexExpr simple = simplify(pool.back(), extents);
      IndexRange range = range_of(simple, extents);
      for (size_t p = 0; p < points.size(); ++p) {
        ASSERT_EQ(evaluate(pool.back(), points[p].data()), result[p]) << to_string(pool.back());
        ASSERT_EQ(evaluate(simple, points[p].data()), result[p])
            << to_string(pool.back()) << " -> " << to_string(simple);
        ASSERT_LE(range.lo, result[p]);
        ASSERT_GE(range.hi, result[p]);
      }
    }
  }
}

TEST(IndexExpr, DigitsOfOneNumberRejoin) {
  IndexExpr x = IndexExpr::axis(0);
  EXPECT_EQ(to_string(floordiv(x, 6) * 6 + floormod(x, 6)), "d0");
  EXPECT_EQ(to_string(simplify(floormod(IndexExpr::axis(0) * 4 + IndexExpr::axis(1), 4), {9, 4})), "d1");
}

// symbol_bounds_arithmetic of the traps.
TEST(Dim, BoundsOfNegatedAndMultipliedSymbols) {
  std::vector<Symbol> symbols{{"n", 2, 10, 1}};
  Dim n = Dim::symbol("n");
  Interval negated = (Dim(0) - n).bounds(symbols), product = ((Dim(3) - n) * (n - Dim(5))).bounds(symbols);
  EXPECT_EQ(negated.lo, -10);
  EXPECT_EQ(negated.hi, -2);
  EXPECT_EQ(product.lo, -35);
  EXPECT_EQ(product.hi, 21);
}

// symbol_nested of the traps.
TEST(Dim, SymbolsInsideExpressionsAreFound) {
  std::vector<std::string> names;
  ((Dim::symbol("h") + 1) * Dim::symbol("w")).collect_symbols(names);
  EXPECT_EQ(names, (std::vector<std::string>{"h", "w"}));
}

}  // namespace
}  // namespace quernel
