// The second half of opening a bundle. FlatBuffers' rules hold, so the structure can be read;
// verify_structure checks that its contents make sense. Included by bundle_reader*.cpp only.
#pragma once

#include "core/expression.h"
#include "core/failure.h"
#include "schemas/bundle_tables.h"

namespace quernel::runtime {

// Returns the number of elements of a vector; 0 if the table has none (bundle_tables.h).
template <class Vector>
uint32_t count(const Vector* vector) {
  return vector->size();
}

// Returns true if the 8-byte elements of a vector are aligned. FlatBuffers' verifier does not check this, and
// reading them requires it.
template <class Vector>
bool aligned_to_8(const Vector* vector) {
  return count(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

inline Expression code_of(const schema::SizeExpression& expression) {
  return {expression.code()->data(), expression.code()->size() / 2};
}

// Requires well-formed code.
bool uses_runtime_symbols(const schema::Bundle& bundle, const Expression& expression);

// Checks every index, range, size, name and dependency of a structure. Requires a well-formed FlatBuffer with
// segments inside the file. features: those of the header. Each reference is followed once and each check
// takes constant time. The work is therefore linear in what verify_shape has admitted, even for crafted
// input.
qnl_status verify_structure(const schema::Bundle& bundle, uint64_t features, uint64_t file_bytes,
                            qnl_error* error);

}  // namespace quernel::runtime
