#include "support/winograd_matrices.h"

namespace quernel::winograd {

// Row p: the coefficients of the product of all (x - q) over the other finite points q.
const Matrix& input_transform(int tile) {
  static const Matrix two = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
  static const Matrix four = {{1, 0, -kA2 - kB2, 0, 1, 0},    {0, -kA * kB2, -kB2, kA, 1, 0},
                              {0, kA * kB2, -kB2, -kA, 1, 0}, {0, -kB * kA2, -kA2, kB, 1, 0},
                              {0, kB * kA2, -kA2, -kB, 1, 0}, {0, 1, 0, -kA2 - kB2, 0, 1}};
  return tile == 2 ? two : four;
}

// Row p: {1, p, p^2} over the product of p - q for all other finite points q.
const Matrix& weights_transform(int tile) {
  static const Matrix two = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  static const Matrix four = {{1, 0, 0},
                              {-2.0 / 3, -2.0 / 3 * kA, -1.0 / 3},
                              {-2.0 / 3, 2.0 / 3 * kA, -1.0 / 3},
                              {1.0 / 6, 1.0 / 6 * kB, 1.0 / 3},
                              {1.0 / 6, -1.0 / 6 * kB, 1.0 / 3},
                              {0, 0, 1}};
  return tile == 2 ? two : four;
}

// Row k: p^k of every finite point p; infinity takes part in the last one.
const Matrix& output_transform(int tile) {
  static const Matrix two = {{1, 1, 1, 0}, {0, 1, -1, -1}};
  static const Matrix four = {
      {1, 1, 1, 1, 1, 0}, {0, kA, -kA, kB, -kB, 0}, {0, kA2, kA2, kB2, kB2, 0}, {0, kA3, -kA3, kB3, -kB3, 1}};
  return tile == 2 ? two : four;
}

}  // namespace quernel::winograd
