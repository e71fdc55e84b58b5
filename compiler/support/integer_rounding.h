// How quantized operators of TensorFlow Lite scale an integer sum by a real multiplier. Runtimes differ, by one step at
// most for each operator.
#pragma once

#include <optional>
#include <string_view>

namespace quernel {

enum class IntegerRounding {
  kSingle,   // one rounding, half up, of a product of 64 bits
  kDouble,   // two: a doubling high product, and a shift, as TensorFlow Lite Micro does
  kFloat32,  // a product of floats, rounded half to even, as LiteRT does through XNNPACK
};

constexpr IntegerRounding kIntegerRoundings[] = {IntegerRounding::kSingle, IntegerRounding::kDouble,
                                                 IntegerRounding::kFloat32};

constexpr std::string_view to_string(IntegerRounding rounding) {
  return rounding == IntegerRounding::kSingle   ? "single"
         : rounding == IntegerRounding::kDouble ? "double"
                                                : "float32";
}

// Returns the rounding of a name; nullopt: there is none.
constexpr std::optional<IntegerRounding> parse_integer_rounding(std::string_view name) {
  for (IntegerRounding rounding : kIntegerRoundings)
    if (to_string(rounding) == name) return rounding;
  return std::nullopt;
}

}  // namespace quernel
