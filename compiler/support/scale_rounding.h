// Which integer a real number becomes where integers stand for real numbers: real = scale * (integer - zero point).
#pragma once

#include <cstdint>

namespace quernel {

// Of the two nearest integers.
enum class ScaleRounding : uint8_t {
  kEven,         // x / scale, half to even
  kAway,         // x / scale, half away from zero
  kEvenProduct,  // x * (1 / scale), half to even
};

}  // namespace quernel
