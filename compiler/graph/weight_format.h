// How weights of floats are quantised (graph/quantize_weights.h).
#pragma once

#include <cstdint>
#include <string>

namespace quernel {

struct WeightFormat {
  int bits = 0;       // 8 or 4; 0: weights stay as they are
  int64_t block = 0;  // elements along the sum that share a scale; 0: all of a column do
};

struct QuantizedLayer {
  std::string name;  // of the model's node that reads the weights
  int64_t elements = 0;
  int bits = 0;
  double error = 0;  // root mean square of the differences, relative to that of the weights
};

}  // namespace quernel
