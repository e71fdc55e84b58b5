// How much of the stack functions of a module take: LLVM's frame sizes, what these leave out, and the deepest
// chain of calls.
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

  // Before machine code is made of the module, as it then is. Functions whose frames need no more than the
  // stack's own alignment are told to make do with it, so that nothing lies in front of their frames.
  void read(llvm::Module& module);
  // While machine code is made.
  void note_frame(const llvm::DiagnosticInfoStackSize& frame);
  // An upper bound of what a call of the function takes. Functions call others of the module by name only,
  // and never themselves.
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
