// Emits programs without a runtime as LLVM IR: run functions, their tables, constants, and static memory.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <map>
#include <string>
#include <vector>

#include "codegen/static_program.h"

namespace quernel::codegen {

// Emits everything except the kernels and static memory: int32_t run(const memory*, const inputs*, const
// outputs*) per entry point, and `void reset(const memory*)` if there are states. Structs are arrays of
// pointers: regions and state; inputs; outputs followed by the destinations of output shapes. Calls without
// symbols become rows of tables, which one loop runs through; everything else is straight-line code.
class ProgramEmitter {
 public:
  ProgramEmitter(llvm::Module& module, const StaticProgram& program);
  void emit();

 private:
  using Value = llvm::Value;

  // Returns the index of a base pointer of bindings: constants, regions, state, inputs, outputs.
  unsigned base_of(const Place& place) const;
  Value* load_pointer(Value* array, uint64_t index);
  Value* element(Value* array, llvm::Type* type, uint64_t index);
  llvm::Constant* constants();
  llvm::Function* declare(const std::string& name, llvm::Type* result, size_t pointers, bool exported);

  void emit_walk();  // int32_t walk(const kernel_fn* kernels, const uint32_t* words, uint32_t calls, bases)
  void emit_entry(const StaticEntry& entry);
  void prepare_frame(const StaticEntry& entry);
  void emit_steps(const StaticEntry& entry, uint32_t begin, uint32_t end);
  // Copies `count` words behind the one at `before` to `symbols`. Returns the block after, and the last word there.
  std::pair<llvm::BasicBlock*, llvm::Value*> emit_symbols(llvm::Value* before, llvm::Value* symbols,
                                                          llvm::Value* count);
  bool fits_table(const Step& step) const;
  void emit_table(const StaticEntry& entry, uint32_t begin, uint32_t end);
  void emit_call(const Step& step);
  void emit_read_symbol(const Step& step);
  void emit_loop(const StaticEntry& entry, uint32_t index);
  void emit_branch(const StaticEntry& entry, uint32_t index);
  void store_shapes(const StaticEntry& entry);
  void emit_reset();

  Value* address(const Place& place);
  Value* scratch_pointer(Value* bases);
  Value* amount(const Amount& amount);
  Value* expression(const PostfixCode& code);
  Value* combine(int64_t opcode, Value* a, Value* b);
  // Returns the result of an intrinsic that reports overflow; an overflow fails the run.
  Value* checked(unsigned intrinsic, Value* a, Value* b);
  void fail_if(Value* condition, int32_t code);
  void fail_unless_ok(Value* code);
  void set_symbol(uint32_t symbol, Value* value, bool check);
  llvm::BasicBlock* new_block(const char* name);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const StaticProgram& program_;
  llvm::IRBuilder<> builder_;
  llvm::Type *i32_, *i64_;
  llvm::PointerType* pointer_;
  llvm::FunctionType* kernel_type_;
  std::vector<llvm::Function*> kernels_;
  llvm::Function* walk_ = nullptr;
  llvm::GlobalVariable* constants_ = nullptr;
  size_t tables_ = 0;  // for their names

  // For the current run function.
  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* failed_ = nullptr;
  llvm::PHINode* failure_ = nullptr;
  Value *bases_ = nullptr, *bindings_ = nullptr, *arguments_ = nullptr, *symbol_arguments_ = nullptr;
  size_t input_count_ = 0;
  std::map<uint32_t, llvm::AllocaInst*> symbols_;
};

// Emits `const memory <identifier>_static_memory` and the memory it points to, in sections
// .bss.<member>.<identifier>.
void emit_static_memory(llvm::Module& module, const StaticProgram& program);

}  // namespace quernel::codegen
