// Expands operations for which the target has no instruction, and for which LLVM would call a library that
// images do not have: square roots, divisions and conversions of 64-bit integers, upper halves of 32-bit products. Also
// signs of halves, where LLVM's own form has no instruction.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/llvm/instruction_set.h"

namespace quernel::codegen {

// Replaces them by calls of functions added to the module, lane by lane, products by a few instructions in place. Results
// equal those of the instructions. Run after optimisation, which removes most of them.
void expand_missing_instructions(llvm::Module& module, const InstructionSet& isa);

// Prepares 64-bit integers for conversion to double and a second rounding to float or less. The bits that
// double cannot hold become one sticky bit far below the last place, so that the two roundings equal one.
llvm::Value* fold_low_bits(llvm::IRBuilderBase& builder, llvm::Value* x, bool is_signed);

}  // namespace quernel::codegen
