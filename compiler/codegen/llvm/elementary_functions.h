// Operations on single elements as functions in C99 or GLSL: the LLVM IR of KernelEmitter for an operation,
// printed in that language. Machine code, C and shaders thus share one description of every algorithm,
// operation by operation. The text calls only functions of the language's prelude.
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
  // For targets with FMA, functions in C call qnl_fma_f32 and qnl_fma_f64. Functions in GLSL do not, because
  // GLSL does not guarantee a single rounding.
  explicit ElementaryFunctions(const Target& target, TextLanguage language = TextLanguage::kC);
  ElementaryFunctions(ElementaryFunctions&&) noexcept;
  ~ElementaryFunctions();

  // Returns the name of the function that computes `operation`: one operation on scalars that are variables
  // or constants. Its parameters are the variables, in order. In C, elements have their C type (int8_t to
  // uint64_t, float, double), and bool is an int of 0 or 1. In GLSL, integers are unsigned; those below 32
  // bits are a uint with zeros above. Narrow floats are their bits.
  std::string name_of(const loop::Expr& operation);

  // Returns all functions named so far, each after those that it calls. An LLVM instruction without a form in
  // the language is an internal error.
  Expected<std::string> print() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quernel::codegen
