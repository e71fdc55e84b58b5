#include "codegen/spirv/glsl_prelude.h"

namespace quernel::codegen {

const char* const kGlslHead = R"(#version 450
#extension GL_EXT_shader_8bit_storage : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_ARB_gpu_shader_int64 : require
#extension GL_EXT_spirv_intrinsics : require
)";
const char* const kGlslSubgroups = R"(#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
)";
// The modes, of SPV_KHR_float_controls: SignedZeroInfNanPreserve and RoundingModeRTE of 16 bits.
const char* const kGlslFloat16 = R"(#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4466], 4461, 16);
spirv_execution_mode(extensions = ["SPV_KHR_float_controls"], capabilities = [4467], 4462, 16);
)";
const char* const kGlslMatrices = R"(#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_memory_scope_semantics : require
#pragma use_vulkan_memory_model
)";

namespace {

struct Definition {
  const char* name;
  const char* text;
};

#define DOT(opcode, result, name, a, b)                                                                     \
  "spirv_instruction(extensions = [\"SPV_KHR_integer_dot_product\"], capabilities = [6019, 6018], id "      \
  "= " #opcode ")\n" result " qnl_dot_words_" name "(" a " x, " b " y, spirv_literal int format);\n" result \
  " qnl_dot_" name "(" a " x, " b " y) { return qnl_dot_words_" name "(x, y, 0); }\n"

constexpr Definition kDefinitions[] = {
    {"qnl_copy_sign_f32", R"(float qnl_copy_sign_f32(float x, float y) {
  return uintBitsToFloat((floatBitsToUint(x) & 0x7fffffffu) | (floatBitsToUint(y) & 0x80000000u));
}
)"},
    {"qnl_copy_sign_f64", R"(double qnl_copy_sign_f64(double x, double y) {
  return uint64BitsToDouble((doubleBitsToUint64(x) & 0x7ffffffffffffffful) |
                            (doubleBitsToUint64(y) & 0x8000000000000000ul));
}
)"},
    // OpSDotKHR, OpUDotKHR and OpSUDotKHR of SPV_KHR_integer_dot_product, on words of four bytes (format 0);
    // capabilities DotProductKHR and DotProductInput4x8BitPackedKHR.
    {"qnl_dot_i32_i32", DOT(4450, "int", "i32_i32", "int", "int")},
    {"qnl_dot_u32_u32", DOT(4451, "uint", "u32_u32", "uint", "uint")},
    {"qnl_dot_i32_u32", DOT(4452, "int", "i32_u32", "int", "uint")},
    {"qnl_funnel_shift_u32", R"(uint qnl_funnel_shift_u32(uint high, uint low, uint count) {
  count &= 31u;
  return count == 0u ? high : (high << count) | (low >> (32u - count));
}
)"},
    {"qnl_funnel_shift_u64", R"(uint64_t qnl_funnel_shift_u64(uint64_t high, uint64_t low, uint64_t places) {
  uint count = uint(places) & 63u;
  return count == 0u ? high : (high << count) | (low >> (64u - count));
}
)"},
    {"qnl_leading_zeros_u32", R"(uint qnl_leading_zeros_u32(uint x) {
  return uint(31 - findMSB(x));
}
)"},
    {"qnl_leading_zeros_u64", R"(uint64_t qnl_leading_zeros_u64(uint64_t x) {
  uint high = uint(x >> 32u);
  return uint64_t(high != 0u ? 31 - findMSB(high) : 63 - findMSB(uint(x)));
}
)"},
};

}  // namespace

std::string glsl_prelude_for(const std::string& text) {
  std::string result;
  for (const Definition& definition : kDefinitions)
    if (text.find(std::string(definition.name) + "(") != std::string::npos) result += definition.text;
  return result;
}

const char* const kGlslReserved[] = {
    "active", "asm", "atomic_uint", "attribute", "bool", "break", "buffer", "bvec2", "bvec3", "bvec4", "case",
    "cast", "centroid", "class", "coherent", "common", "const", "continue", "default", "discard", "dmat2",
    "dmat3", "dmat4", "do", "double", "dvec2", "dvec3", "dvec4", "else", "enum", "extern", "external",
    "false", "filter", "fixed", "flat", "float", "for", "goto", "half", "highp", "hvec2", "hvec3", "hvec4",
    "if", "in", "inline", "inout", "input", "int", "interface", "invariant", "isampler", "ivec2", "ivec3",
    "ivec4", "layout", "long", "lowp", "mat2", "mat3", "mat4", "mediump", "namespace", "noinline",
    "noperspective", "out", "output", "partition", "patch", "precise", "precision", "public", "readonly",
    "resource", "restrict", "return", "sample", "sampler", "shared", "short", "signed", "sizeof", "smooth",
    "static", "struct", "subroutine", "superp", "switch", "template", "this", "true", "typedef", "uint",
    "uniform", "union", "unsigned", "using", "uvec2", "uvec3", "uvec4", "varying", "vec2", "vec3", "vec4",
    "void", "volatile", "while", "writeonly", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
    "uint16_t", "uint32_t", "uint64_t", "float16_t", "float32_t", "float64_t",
    // functions and names of the printer's
    "abs", "barrier", "bitfieldExtract", "doubleBitsToUint64", "findMSB", "floatBitsToUint", "fma", "main",
    "max", "memoryBarrierBuffer", "min", "sqrt", "uint64BitsToDouble", "uintBitsToFloat", "grid", "lane",
    "parameters", "workgroup", "PARAMETER"};
const size_t kGlslReservedCount = sizeof(kGlslReserved) / sizeof(kGlslReserved[0]);

}  // namespace quernel::codegen
