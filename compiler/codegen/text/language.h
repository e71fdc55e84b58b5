// The two languages of generated text, C99 and GLSL: their common spelling, and their differences as data.
#pragma once

#include <string>

#include "support/dtype.h"
#include "support/scalar_ops.h"

namespace quernel::codegen {

enum class TextLanguage { kC, kGlsl };

struct Spelling {
  // Operators on truth values (ints of 0 and 1 in C, bools in GLSL), and the text around a negated operand.
  const char *both, *either, *differ, *not_begin, *not_end;
  const char* index_type;  // for i64 values that fit in 32 bits
  // Functions that convert floats to their bits and back.
  const char *bits_of_f32, *bits_of_f64, *f32_of_bits, *f64_of_bits;
  bool converts_by_call;   // TYPE(x), else (TYPE)x
  bool divides_negatives;  // `/` and `%` of negative integers are defined and truncate
  bool names_constants;    // negative constants, if they are repeated
};
const Spelling& spelling_of(TextLanguage language);

// Returns `x`, a name or a text in parentheses, converted to `type`.
std::string converted(const Spelling& spelling, const std::string& type, const std::string& x);

// Returns `(a OP b)`.
std::string infix_text(const std::string& a, const char* op, const std::string& b);
// Returns the operator, equal in both languages, that computes `op` on elements of `dtype`, up to the width
// of narrow results; null if one operator does not suffice. Not for bool.
const char* operator_text(BinaryOp op, DType dtype);
// Returns `op` on truth values.
std::string bool_text(const Spelling& spelling, BinaryOp op, const std::string& a, const std::string& b);
// Returns whether the languages compute with floats of this dtype directly.
inline bool is_wide_float(DType dtype) { return dtype == DType::kF32 || dtype == DType::kF64; }

// Returns whether the text is a name or a number, without any computation.
bool is_word(const std::string& text);

}  // namespace quernel::codegen
