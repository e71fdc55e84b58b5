// The stack use of a module's functions: LLVM's frame sizes, what these leave out, and the deepest chain of
// calls.
#pragma once

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "targets/target.h"

namespace quernel::codegen {

class StackUse {
 public:
  explicit StackUse(const Target& target) : target_(target) {}

  // Call before machine code is generated, on the final module. Functions whose frames need no more than the
  // stack's own alignment are restricted to it, so that no gap precedes their frames.
  void read(llvm::Module& module);
  // Call while machine code is generated.
  void note_frame(const llvm::DiagnosticInfoStackSize& frame);
  // Returns an upper bound of the stack that a call of the function takes. Functions call other functions of
  // the module by name only, and never themselves.
  uint64_t bound(const std::string& function) const;

 private:
  struct Function {
    uint64_t frame = 0, gap = 0;
    std::vector<std::string> callees;
  };
  Target target_;
  std::map<std::string, Function> functions_;
};

}  // namespace quernel::codegen
