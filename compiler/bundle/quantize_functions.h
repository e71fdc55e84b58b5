// Functions of a program's header between real numbers and the integers that stand for them: C99 and C++, inline,
// without a library.
#pragma once

#include <string>

#include "codegen/static_program.h"

namespace quernel::bundle {

// Returns the functions that those of the inputs call: one per way to round that an input has.
std::string rounding_functions(const codegen::StaticProgram& program);

// Returns `<entry>_input_<name>_quantize(float)`: the integer that `quantize` of graph/io_types.h makes, to the bit.
// The result saturates; NaN becomes the zero point, or the nearest integer to it that the dtype has.
// Requires a scale.
std::string quantize_function(const codegen::StaticProgram& program, const codegen::StaticEntry& entry,
                              const codegen::StaticTensor& input);
// Returns `<entry>_output_<name>_dequantize(integer)`: scale * (integer - zero point), rounded once. Requires a scale.
std::string dequantize_function(const codegen::StaticEntry& entry, const codegen::StaticTensor& output);

}  // namespace quernel::bundle
