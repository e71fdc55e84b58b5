#include "bundle/quantize_functions.h"

#include "bundle/c_identifiers.h"
#include "bundle/c_types.h"

namespace quernel::bundle {
namespace {

using codegen::StaticEntry;
using codegen::StaticProgram;
using codegen::StaticTensor;

bool rounds_away(ScaleRounding rounding) { return rounding == ScaleRounding::kAway; }

std::string rounding_name(const StaticProgram& program, ScaleRounding rounding) {
  return program.identifier + (rounds_away(rounding) ? "_round_away" : "_round_even");
}

// Clamps first, so that the conversion is in range; the fraction is exact. Bounds are below 2^18, which floats hold.
std::string rounding_function(const StaticProgram& program, ScaleRounding rounding) {
  bool away = rounds_away(rounding);
  std::string odd = away ? "" : " && whole % 2 != 0";
  auto beyond_half = [&](const char* compare, const char* half) {
    std::string reaches = std::string("rest ") + compare + "= " + half;
    return away ? reaches : std::string("rest ") + compare + " " + half + " || (" + reaches + odd + ")";
  };
  return "/* The nearest integer, " + std::string(away ? "halves away from zero" : "the even one of two") +
         ", between lowest and highest; NaN as 0. */\n"
         "static inline int32_t " +
         rounding_name(program, rounding) +
         "(float x, int32_t lowest, int32_t highest) {\n"
         "  int32_t whole;\n"
         "  float rest;\n"
         "  if (x >= (float)highest) return highest;\n"
         "  if (x <= (float)lowest) return lowest;\n"
         "  if (!(x > (float)lowest)) return lowest > 0 ? lowest : highest < 0 ? highest : 0;\n"
         "  whole = (int32_t)x;\n"
         "  rest = x - (float)whole;\n"
         "  if (" +
         beyond_half(">", "0.5f") + ") return whole + 1;\n  if (" + beyond_half("<", "-0.5f") +
         ") return whole - 1;\n  return whole;\n}\n\n";
}

}  // namespace

std::string rounding_functions(const StaticProgram& program) {
  std::string text;
  for (ScaleRounding rounding : {ScaleRounding::kEven, ScaleRounding::kAway}) {
    bool used = false;
    for (const StaticEntry& entry : program.entries)
      for (const StaticTensor& input : entry.inputs)
        used |= input.scale != 0 && rounds_away(input.rounding) == rounds_away(rounding);
    if (used) text += rounding_function(program, rounding);
  }
  return text;
}

std::string quantize_function(const StaticProgram& program, const StaticEntry& entry,
                              const StaticTensor& input) {
  std::string name = entry.identifier + "_input_" + input.identifier, macro = upper_case(name);
  std::string type(c_element_type(input.dtype)), zero = macro + "_ZERO_POINT";
  int bits = bit_width(input.dtype) - (is_signed_integer(input.dtype) ? 1 : 0);
  int32_t highest = (int32_t{1} << bits) - 1, lowest = is_signed_integer(input.dtype) ? -highest - 1 : 0;
  std::string scaled = input.rounding == ScaleRounding::kEvenProduct ? "real * (1.0f / " + macro + "_SCALE)"
                                                                     : "real / " + macro + "_SCALE";
  return "/* The element that stands for a real number, to the bit what --io f32 makes of it. It saturates; "
         "NaN\n"
         " * becomes the zero point. */\n"
         "static inline " +
         type + " " + name + "_quantize(float real) {\n  const float scaled = " + scaled +
         ";\n  const int32_t zero = " + zero + ";\n  return (" + type + ")(" +
         rounding_name(program, input.rounding) + "(scaled, " + std::to_string(lowest) + " - zero, " +
         std::to_string(highest) + " - zero) + zero);\n}\n";
}

std::string dequantize_function(const StaticEntry& entry, const StaticTensor& output) {
  std::string name = entry.identifier + "_output_" + output.identifier, macro = upper_case(name);
  return "/* The real number that an element stands for, to the bit what --io f32 makes of it. */\n"
         "static inline float " +
         name + "_dequantize(" + std::string(c_element_type(output.dtype)) + " element) {\n  return " +
         macro + "_SCALE * (float)((int32_t)element - " + macro + "_ZERO_POINT);\n}\n";
}

}  // namespace quernel::bundle
