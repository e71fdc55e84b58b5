// What becomes of a model that gives one name to several values, against ONNX's rules.
#pragma once

#include <cstdint>

namespace quernel {

enum class DuplicateNames : uint8_t {
  kConstants,  // of constants the last counts, as in ONNX Runtime; others are refused
  kLast,       // the last counts
  kRefuse,     // all are refused but constants of one value
};

}  // namespace quernel
