// Random numbers instead of a model's weights, for tests of a machine to which the weights need not travel.
#pragma once

#include <cstdint>

#include "graph/ir.h"

namespace quernel {

// Gives each large constant of floats (kRandomWeights elements and more), also in bodies, other values of the
// same mean and variance and within the same range. They depend on `seed` and on the constant's shape and
// values, not on where it is. Constants with few different values, which are masks, and those with infinities
// stay.
//
// The values repeat: along the first two axes, a block of 8 x 8 (times all other axes) of random numbers u
// occurs again and again, each time as it is or negated, by a random sign s:
//   w[i, j, ...] = mean + deviation * s[i / 8, j / 8] * u[i % 8, j % 8, ...]
// A matrix of this kind is a Kronecker product: its rank is full and its largest singular value near that
// of independent numbers, so that activations stay of the size that they have in the model. And whatever a
// target makes of it, packed or transformed, has long parts that are equal, which compress.
void randomize_weights(Graph& graph, uint64_t seed);

inline constexpr int64_t kRandomWeights = 4096;

}  // namespace quernel
