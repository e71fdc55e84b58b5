// How weights of floats are quantised (graph/quantize_weights.h).
#pragma once

#include <cstdint>

namespace quernel {

struct WeightFormat {
  int bits = 0;       // 8 or 4; 0: weights stay as they are
  int64_t block = 0;  // elements along the sum that share a scale; 0: all of a column do
};

}  // namespace quernel
