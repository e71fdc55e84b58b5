#include "codegen/text/glsl_float.h"

#include <bit>
#include <cmath>
#include <cstdio>

namespace quernel::codegen {

// What is not a normal number is written as its bits: compilers may read 0 or an error.
std::string glsl_float(uint64_t bits, bool is_f32) {
  double value = is_f32 ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                        : std::bit_cast<double>(bits);
  bool plain = value == 0 || (is_f32 ? std::isnormal(static_cast<float>(value)) : std::isnormal(value));
  if (!plain || (value == 0 && std::signbit(value)))
    return is_f32 ? "uintBitsToFloat(" + std::to_string(bits) + "u)"
                  : "uint64BitsToDouble(" + std::to_string(bits) + "ul)";
  char text[40];
  std::snprintf(text, sizeof text, is_f32 ? "%.9g" : "%.17g", value);
  std::string number = text;
  if (number.find_first_of(".e") == std::string::npos) number += ".0";
  if (!is_f32) number += "lf";
  return value < 0 ? "(" + number + ")" : number;
}

}  // namespace quernel::codegen
