// Operations that the target has no instruction for, and that LLVM would turn into calls of a library that
// images do not have: square roots, and divisions and conversions of 64-bit integers. Also signs of halves,
// where LLVM finds no instruction for what it makes of them.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/instruction_set.h"

namespace quernel::codegen {

// Replaces them by calls of functions that are added to the module, lane by lane. Results are those of the
// instructions. Run after optimisation, which removes most.
void expand_missing_instructions(llvm::Module& module, const InstructionSet& isa);

// Of 64-bit integers, to be converted to double and rounded again to float or less: bits that double cannot
// hold become one sticky bit far below the last place, so that rounding twice is rounding once.
llvm::Value* fold_low_bits(llvm::IRBuilderBase& builder, llvm::Value* x, bool is_signed);

}  // namespace quernel::codegen
