// Index expressions: simplification keeps every value, and symbolic dims keep their bounds.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "graph/dim.h"
#include "graph/index_map.h"

namespace quernel {
namespace {

TEST(IndexExpr, simplification_keeps_every_value) {
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
      Shape dims = make_shape(extents);
      IndexExpr simple = simplify(pool.back(), dims);
      IndexRange range = range_of(simple, dims);
      for (size_t p = 0; p < points.size(); ++p) {
        ASSERT_EQ(evaluate(pool.back(), points[p].data()), result[p]) << to_string(pool.back());
        ASSERT_EQ(evaluate(simple, points[p].data()), result[p])
            << to_string(pool.back()) << " -> " << to_string(simple);
        ASSERT_LE(range.lo.value(), result[p]);
        ASSERT_GE(range.hi.value(), result[p]);
      }
    }
  }
}

TEST(IndexExpr, digits_of_one_number_rejoin) {
  IndexExpr x = IndexExpr::axis(0);
  EXPECT_EQ(to_string(floordiv(x, 6) * 6 + floormod(x, 6)), "d0");
  EXPECT_EQ(to_string(simplify(floormod(IndexExpr::axis(0) * 4 + IndexExpr::axis(1), 4), {9, 4})), "d1");
}

// symbol_bounds_arithmetic of the traps.
TEST(Dim, bounds_of_negated_and_multiplied_symbols) {
  Dim n = Dim::symbol({"n", 2, 10, 1, false, {}});
  Interval negated = (Dim(0) - n).bounds(), product = ((Dim(3) - n) * (n - Dim(5))).bounds();
  EXPECT_EQ(negated.lo, -10);
  EXPECT_EQ(negated.hi, -2);
  // Bounds of an interval per term: wider than the product's values (-35..1), never narrower.
  EXPECT_LE(product.lo, -35);
  EXPECT_GE(product.hi, 1);
}

TEST(Dim, equal_polynomials_are_equal) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_EQ((n + 1) * (m - 2), n * m + m - n * 2 - 2);
  EXPECT_EQ(n - n, Dim(0));
  EXPECT_EQ(floordiv(n * 8 + 3, 4), n * 2);
  EXPECT_EQ(floormod(n * 8 + 3, 4), Dim(3));
  EXPECT_EQ(floordiv((n + 1) * m, n + 1), m);
  EXPECT_EQ(max(n, 0), n);
  EXPECT_EQ(min(n + 1, n), n);
  EXPECT_TRUE(always_le(floordiv(n, 3) * 3, n));
  EXPECT_TRUE(always_lt(n, floordiv(n, 3) * 3 + 3));
  EXPECT_FALSE(always_le(n, m));
}

// Expanded, the fourth power of ten symbols has 715 terms, and its partial sums took gigabytes.
TEST(Dim, powers_of_long_sums_stay_products) {
  Dim sum = 0;
  for (int i = 0; i < 10; ++i) sum = sum + Dim::symbol("n" + std::to_string(i));
  Dim square = sum * sum, fourth = square * square;
  EXPECT_EQ(square, sum * sum);
  EXPECT_LE(to_string(fourth).size(), 2 * to_string(square).size() + 16);
}

// Random expressions: the canonical form, the bounds and the upper bound against plain evaluation.
TEST(Dim, arithmetic_keeps_every_value) {
  std::mt19937 random(7);
  auto pick = [&](int k) { return static_cast<int>(random() % static_cast<unsigned>(k)); };
  Symbol bound{"n", 1, 6, 1, false, {}}, even{"m", 2, 8, 2, false, {}};
  for (int round = 0; round < 3000; ++round) {
    std::vector<Dim> pool{Dim::symbol(bound), Dim::symbol(even), Dim(pick(5))};
    std::map<std::string, int64_t> at{{"n", 1 + pick(6)}, {"m", 2 + 2 * pick(4)}};
    std::vector<int64_t> values{at["n"], at["m"], pool[2].value()};
    for (int step = 0; step < 6; ++step) {
      int x = pick(static_cast<int>(pool.size())), y = pick(static_cast<int>(pool.size()));
      int64_t a = values[x], b = values[y];
      auto floor_div = [](int64_t p, int64_t q) { return p / q - (p % q != 0 && (p < 0) != (q < 0)); };
      switch (pick(7)) {
        case 0:
          pool.push_back(pool[x] + pool[y]), values.push_back(a + b);
          break;
        case 1:
          pool.push_back(pool[x] - pool[y]), values.push_back(a - b);
          break;
        case 2:
          if (std::abs(a) > 1000 || std::abs(b) > 1000) continue;
          pool.push_back(pool[x] * pool[y]), values.push_back(a * b);
          break;
        case 3:
          if (pool[y].bounds().lo < 1) continue;
          pool.push_back(floordiv(pool[x], pool[y])), values.push_back(floor_div(a, b));
          break;
        case 4:
          if (pool[y].bounds().lo < 1) continue;
          pool.push_back(floormod(pool[x], pool[y])), values.push_back(a - floor_div(a, b) * b);
          break;
        case 5:
          pool.push_back(min(pool[x], pool[y])), values.push_back(std::min(a, b));
          break;
        default:
          pool.push_back(max(pool[x], pool[y])), values.push_back(std::max(a, b));
          break;
      }
      const Dim& d = pool.back();
      ASSERT_EQ(d.evaluate(at), values.back()) << to_string(d);
      ASSERT_LE(d.bounds().lo, values.back()) << to_string(d);
      ASSERT_GE(d.bounds().hi, values.back()) << to_string(d);
      ASSERT_EQ(values.back() % std::max<int64_t>(d.known_divisor(), 1), 0) << to_string(d);
      if (always_le(pool[x], pool[y])) {
        ASSERT_LE(a, b) << to_string(pool[x]) << ", " << to_string(pool[y]);
      }
      if (std::optional<Dim> q = divide_exactly(pool[x], pool[y])) {
        ASSERT_EQ(*q->evaluate(at) * b, a) << to_string(pool[x]) << " / " << to_string(pool[y]);
      }
    }
  }
}

// symbol_nested of the traps.
TEST(Dim, symbols_inside_expressions_are_found) {
  std::vector<Symbol> symbols;
  ((Dim::symbol("h") + 1) * Dim::symbol("w")).collect_symbols(symbols);
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].name, "h");
  EXPECT_EQ(symbols[1].name, "w");
}

}  // namespace
}  // namespace quernel
