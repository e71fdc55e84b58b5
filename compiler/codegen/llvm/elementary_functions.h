// Operations on single elements as C99 functions: the LLVM IR that KernelEmitter makes of an operation,
// printed as C. Machine code and C thus compute with one description of every algorithm, operation by
// operation. The text calls what codegen/c/prelude.h lists and nothing else.
#pragma once

#include <memory>
#include <string>

#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

class ElementaryFunctions {
 public:
  // For targets with FMA the functions call qnl_fma_f32 and qnl_fma_f64.
  explicit ElementaryFunctions(const Target& target);
  ElementaryFunctions(ElementaryFunctions&&) noexcept;
  ~ElementaryFunctions();

  // The name of the function that computes `operation`: one operation on scalars that are variables or
  // constants. Its parameters are the variables, in order. Elements are what they are in C (int8_t to
  // uint64_t, float, double); narrow floats are their bits, bool is an int of 0 or 1.
  std::string name_of(const loop::Expr& operation);

  // All functions that were named, each behind those that it calls. An LLVM instruction that has no form in C
  // is an internal error.
  Expected<std::string> print() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quernel::codegen
