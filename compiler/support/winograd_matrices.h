// The matrices of Winograd's minimal filtering F(2x2, 3x3) and F(4x4, 3x3); A. Lavin and S. Gray, "Fast
// Algorithms for Convolutional Neural Networks" (2015): Y = A^T [(G g G^T) * (B^T d B)] A.
#pragma once

#include <vector>

namespace quernel::winograd {

using Matrix = std::vector<std::vector<double>>;

// The algorithm's points are the roots of polynomials: 0, 1, -1 and infinity for tiles of 2; 0, a, -a, b, -b
// and infinity for tiles of 4, where a = sqrt(1/2) and b = sqrt(2) keep the transforms' factors near 1, which
// halves the rounding error that 1 and 2 lead to.
constexpr double kA = 0.70710678118654752440, kB = 1.41421356237309504880;
constexpr double kA2 = 0.5, kB2 = 2, kA3 = kA * kA2, kB3 = kB * kB2;

// `tile` is 2 or 4, the side of the output's tiles.
const Matrix& input_transform(int tile);    // B^T, [tile + 2, tile + 2]
const Matrix& weights_transform(int tile);  // G, [tile + 2, 3]
const Matrix& output_transform(int tile);   // A^T, [tile, tile + 2]

}  // namespace quernel::winograd
