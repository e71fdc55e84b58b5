// What every shader begins with, and functions that GLSL lacks.
#pragma once

#include <string>

namespace quernel::codegen {

// Version and extensions. Asking for an extension asks the device for nothing; using its types does.
extern const char* const kGlslHead;
// Extensions for operations of subgroups.
extern const char* const kGlslSubgroups;
// For conversions between halves and floats: an extension and execution modes.
extern const char* const kGlslFloat16;
// Words that names must not be: GLSL's own, and functions that shaders call.
extern const char* const kGlslReserved[];
extern const size_t kGlslReservedCount;
// The functions that `text` calls.
std::string glsl_prelude_for(const std::string& text);

}  // namespace quernel::codegen
