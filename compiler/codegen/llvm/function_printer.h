// LLVM functions as text of a C-like language: names for instructions, blocks and jumps, phis. What a
// language has its own form of, it overrides. Meant for straight-line arithmetic on scalars with a few jumps.
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <map>
#include <set>
#include <string>

#include "support/expected.h"

namespace quernel::codegen {

class FunctionPrinter {
 public:
  FunctionPrinter(const llvm::Function& function, std::string prefix, const char* pass)
      : function_(function), prefix_(std::move(prefix)), pass_(pass) {}
  virtual ~FunctionPrinter() = default;
  FunctionPrinter(const FunctionPrinter&) = delete;
  FunctionPrinter& operator=(const FunctionPrinter&) = delete;

  // The definition, under this name.
  Expected<std::string> run(const std::string& name);

 protected:
  // ---- what languages differ in
  virtual std::string type_name(const llvm::Type& type) = 0;
  // `head` is "TYPE NAME(PARAMETERS)".
  virtual std::string definition(const std::string& head, const std::string& body) = 0;
  virtual std::string constant(const llvm::Constant& value, bool is_signed) = 0;
  virtual std::string as_signed(const llvm::Type& type, const std::string& text) = 0;
  virtual std::string binary_text(const llvm::BinaryOperator& i) = 0;
  virtual std::string cast_text(const llvm::CastInst& i) = 0;
  virtual std::string intrinsic_text(const llvm::IntrinsicInst& i) = 0;
  virtual std::string logical(const char* op) const { return op; }               // of operators on bits
  virtual std::string subscript(const std::string& text) const { return text; }  // of a table
  virtual std::string variable(const llvm::Type& type, const std::string& name, bool is_final) = 0;
  virtual std::string unused_parameter(const std::string& name) {
    (void)name;
    return {};
  }
  virtual void begin_block(const llvm::BasicBlock& block) = 0;
  virtual std::string jump_to(const llvm::BasicBlock& block) = 0;
  // Text of all blocks, where there are several.
  virtual std::string blocks(const std::string& text) { return text; }
  // The operands that an instruction's text has twice are named first.
  virtual bool repeats_operands(const llvm::Instruction& i) const;

  std::string operand(const llvm::Value* v) { return operand_as(v, false); }
  std::string signed_operand(const llvm::Value* v) { return operand_as(v, true); }
  std::string operand_as(const llvm::Value* v, bool is_signed);
  void fail(const llvm::Instruction& i);
  void line(const std::string& text) { body_ += "  " + text + "\n"; }
  static unsigned width_of(const llvm::Type& type) { return type.getIntegerBitWidth(); }
  int number_of(const llvm::BasicBlock& block) const { return numbers_.at(&block); }

  std::string declarations_, body_;

 private:
  void choose_names();
  void print_block(const llvm::BasicBlock& block);
  void define(const llvm::Instruction& i, const std::string& text);
  std::string jump(const llvm::BasicBlock* from, const llvm::BasicBlock* to);
  void terminator(const llvm::Instruction& i);
  std::string expression(const llvm::Instruction& i);
  std::string compare_text(const llvm::CmpInst& i);

  const llvm::Function& function_;
  std::string prefix_, problem_;
  const char* pass_;
  std::map<const llvm::Value*, std::string> names_;
  std::map<const llvm::BasicBlock*, int> numbers_;  // where there are several
  std::set<const llvm::Value*> named_;
  int next_ = 0;
};

}  // namespace quernel::codegen
