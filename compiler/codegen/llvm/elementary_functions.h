// Operations on single elements as functions in C99 or GLSL: the LLVM IR that KernelEmitter makes of an
// operation, printed in that language. Machine code, C and shaders thus compute with one description of every
// algorithm, operation by operation. The text calls what the language's prelude has and nothing else.
#pragma once

#include <memory>
#include <string>

#include "codegen/text/language.h"
#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

class ElementaryFunctions {
 public:
  // For targets with FMA the functions in C call qnl_fma_f32 and qnl_fma_f64; those in GLSL, where one
  // rounding is not promised, do without.
  explicit ElementaryFunctions(const Target& target, TextLanguage language = TextLanguage::kC);
  ElementaryFunctions(ElementaryFunctions&&) noexcept;
  ~ElementaryFunctions();

  // The name of the function that computes `operation`: one operation on scalars that are variables or
  // constants. Its parameters are the variables, in order. In C elements are what they are there (int8_t to
  // uint64_t, float, double), bool is an int of 0 or 1; in GLSL integers are unsigned, those below 32 bits a
  // uint with zeros above. Narrow floats are their bits.
  std::string name_of(const loop::Expr& operation);

  // All functions that were named, each behind those that it calls. An LLVM instruction that has no form in
  // the language is an internal error.
  Expected<std::string> print() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quernel::codegen
