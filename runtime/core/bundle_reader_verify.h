// The second half of opening a bundle: FlatBuffers has checked that the structure can be read;
// verify_structure checks that what it says makes sense. Included by bundle_reader*.cpp only.
#pragma once

#include "core/expression.h"
#include "core/failure.h"
#include "schemas/bundle_tables.h"

namespace quernel::runtime {

// Elements of a vector, which is empty where the table has none (bundle_tables.h).
template <class Vector>
uint32_t count(const Vector* vector) {
  return vector->size();
}

// FlatBuffers' verifier leaves open whether the 8-byte elements of a vector are aligned; reading them needs
// it.
template <class Vector>
bool aligned_to_8(const Vector* vector) {
  return count(vector) == 0 || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

inline Expression code_of(const schema::SizeExpression& expression) {
  return {expression.code()->data(), expression.code()->size() / 2};
}

// For well-formed code.
bool uses_runtime_symbols(const schema::Bundle& bundle, const Expression& expression);

// Every index, range, size, name and dependency of a structure whose FlatBuffer is well-formed and whose
// segments lie inside the file. features: of the header. Each reference is followed once and each check takes
// constant time, so that the work is linear in what verify_shape has admitted, also for crafted input.
qnl_status verify_structure(const schema::Bundle& bundle, uint64_t features, uint64_t file_bytes,
                            qnl_error* error);

}  // namespace quernel::runtime
