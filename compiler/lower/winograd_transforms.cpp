#include "lower/winograd_transforms.h"

#include "support/winograd_matrices.h"

namespace quernel::lower {
namespace {

using namespace winograd;
using loop::Expr;

// Rows of the input's transform B^T, applied to one line of tile + 2 values: per point p the coefficients of
// the product of all (x - q) over the other finite points q.
std::vector<Expr> input_line(Straight& s, const std::vector<Expr>& d) {
  if (d.size() == 4)
    return {s.subtract(d[0], d[2]), s.add(d[1], d[2]), s.subtract(d[2], d[1]), s.subtract(d[1], d[3])};
  Expr even_a = s.scaled(d[2], -kB2, d[4]), odd_a = s.scaled(d[1], -kB2, d[3]);
  Expr even_b = s.scaled(d[2], -kA2, d[4]), odd_b = s.scaled(d[1], -kA2, d[3]);
  return {s.scaled(d[2], -(kA2 + kB2), s.add(d[0], d[4])),
          s.scaled(odd_a, kA, even_a),
          s.scaled(odd_a, -kA, even_a),
          s.scaled(odd_b, kB, even_b),
          s.scaled(odd_b, -kB, even_b),
          s.scaled(d[3], -(kA2 + kB2), s.add(d[1], d[5]))};
}

// Rows of the output's transform A^T, applied to one line of tile + 2 sums: result k is the sum of p^k m[p]
// over the finite points, the last one plus infinity's.
std::vector<Expr> output_line(Straight& s, const std::vector<Expr>& m) {
  if (m.size() == 4) return {s.add(s.add(m[0], m[1]), m[2]), s.subtract(s.subtract(m[1], m[2]), m[3])};
  Expr sum_a = s.add(m[1], m[2]), difference_a = s.subtract(m[1], m[2]);
  Expr sum_b = s.add(m[3], m[4]), difference_b = s.subtract(m[3], m[4]);
  return {s.add(s.add(m[0], sum_a), sum_b), s.scaled(difference_b, kB, s.times(difference_a, kA)),
          s.scaled(sum_b, kB2, s.times(sum_a, kA2)),
          s.scaled(difference_b, kB3, s.scaled(difference_a, kA3, m[5]))};
}

using Transform = std::vector<Expr> (*)(Straight&, const std::vector<Expr>&);

// `transform` along both dims of a square of values: first each column, then each row of the result.
Square both_ways(Straight& s, Transform transform, const Square& square) {
  size_t side = square.size();
  Square half;
  for (size_t x = 0; x < side; ++x) {
    std::vector<Expr> column;
    for (size_t y = 0; y < side; ++y) column.push_back(square[y][x]);
    std::vector<Expr> result = transform(s, column);
    half.resize(result.size());
    for (size_t y = 0; y < result.size(); ++y) half[y].push_back(result[y]);
  }
  for (std::vector<Expr>& row : half) row = transform(s, row);
  return half;
}

}  // namespace

Square transform_input(Straight& s, const Square& d) { return both_ways(s, input_line, d); }
Square transform_output(Straight& s, const Square& m) { return both_ways(s, output_line, m); }

}  // namespace quernel::lower
