// The beginning of every shader, and functions that GLSL lacks.
#pragma once

#include <string>

namespace quernel::codegen {

// Version and extensions. Enabling an extension requires nothing of the device; using its types does.
extern const char* const kGlslHead;
// Extensions for subgroup operations.
extern const char* const kGlslSubgroups;
// For conversions between halves and floats: an extension and execution modes.
extern const char* const kGlslFloat16;
// For cooperative matrices: loops that drivers should unroll, and the memory model that these need.
extern const char* const kGlslMatrices;
// Words that may not be used as names: GLSL's keywords, and functions that shaders call.
extern const char* const kGlslReserved[];
extern const size_t kGlslReservedCount;
// Returns the functions that `text` calls.
std::string glsl_prelude_for(const std::string& text);

}  // namespace quernel::codegen
