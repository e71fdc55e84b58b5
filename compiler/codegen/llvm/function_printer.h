// Prints LLVM functions in a C-like language: names for instructions, blocks and jumps, phis, operators. A
// language overrides what it spells differently. Meant for straight-line arithmetic on scalars with a few
// jumps.
#pragma once

#include <llvm/IR/Constants.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <map>
#include <memory>
#include <set>
#include <string>

#include "codegen/text/language.h"
#include "support/expected.h"

namespace quernel::codegen {

class FunctionPrinter {
 public:
  FunctionPrinter(const llvm::Function& function, std::string prefix, TextLanguage language)
      : spelling_(spelling_of(language)),
        function_(function),
        prefix_(std::move(prefix)),
        language_(language) {}
  virtual ~FunctionPrinter() = default;
  FunctionPrinter(const FunctionPrinter&) = delete;
  FunctionPrinter& operator=(const FunctionPrinter&) = delete;

  // Returns the definition, under this name.
  Expected<std::string> run(const std::string& name);

 protected:
  // ---- what languages differ in
  //
  // `head` is "TYPE NAME(PARAMETERS)".
  virtual std::string definition(const std::string& head, const std::string& body) = 0;
  virtual std::string constant(const llvm::Constant& value, bool is_signed) = 0;
  virtual std::string as_signed(const llvm::Type& type, const std::string& text) = 0;
  // Integers are unsigned. in_words: an operand of arithmetic. wrapped: the bits of a result in `type`.
  // to_unsigned: the unsigned form of a result of signed arithmetic.
  virtual std::string in_words(const llvm::Type&, const std::string& x) const { return x; }
  virtual std::string wrapped(const llvm::Type& type, const std::string& text) const = 0;
  virtual std::string to_unsigned(const llvm::Type& type, const std::string& text) const = 0;
  virtual std::string as_count(const std::string& x) const { return x; }  // for shifts and table indices
  virtual std::string exclusive_or(const llvm::BinaryOperator& i);
  virtual std::string signed_remainder(const llvm::Type& type, const std::string& a,
                                       const std::string& b) const;
  virtual std::string truncated(const llvm::Type& to, const std::string& x) const = 0;
  virtual std::string all_bits(const llvm::Type& to, const std::string& bit) = 0;           // each is `bit`
  virtual std::string sign_extended(const llvm::Type& to, const std::string& x) const = 0;  // `x` is signed
  // Converts a float in range to an integer.
  virtual std::string whole(const llvm::Type& to, const std::string& x, bool is_signed) const = 0;
  // Converts a float to an integer: values out of range become the nearest, NaN becomes 0.
  virtual std::string saturated(const llvm::IntrinsicInst& i, bool is_signed) = 0;
  virtual std::string bits(const llvm::CastInst& i);
  // Returns the language's float function for an LLVM intrinsic; empty: none.
  virtual std::string float_function(llvm::Intrinsic::ID id, bool is_f32) const = 0;
  virtual std::string variable(const llvm::Type& type, const std::string& name, bool is_final) = 0;
  virtual std::string unused_parameter(const std::string& name) {
    (void)name;
    return {};
  }
  virtual void begin_block(const llvm::BasicBlock& block) = 0;
  virtual std::string jump_to(const llvm::BasicBlock& block) = 0;
  // Returns the text of all blocks, if there are several.
  virtual std::string blocks(const std::string& text) { return text; }
  // Returns whether operands that occur twice in the instruction's text are named first.
  virtual bool repeats_operands(const llvm::Instruction& i) const;

  // Returns the text of an integer operand of < and its like; a language may need another order-keeping form.
  virtual std::string ordered(const llvm::Value* v, bool is_signed) { return operand_as(v, is_signed); }

  std::string operand(const llvm::Value* v) { return operand_as(v, false); }
  std::string signed_operand(const llvm::Value* v) { return operand_as(v, true); }
  std::string operand_as(const llvm::Value* v, bool is_signed);
  void fail(const llvm::Instruction& i);
  void line(const std::string& text) { body_ += "  " + text + "\n"; }
  static unsigned width_of(const llvm::Type& type) { return type.getIntegerBitWidth(); }
  std::string type_name(const llvm::Type& type) const;
  int number_of(const llvm::BasicBlock& block) const { return numbers_.at(&block); }

  const Spelling& spelling_;
  std::string declarations_, body_;

 private:
  void choose_names();
  void print_block(const llvm::BasicBlock& block);
  void define(const llvm::Instruction& i, const std::string& text);
  std::string jump(const llvm::BasicBlock* from, const llvm::BasicBlock* to);
  void terminator(const llvm::Instruction& i);
  std::string expression(const llvm::Instruction& i);
  std::string binary_text(const llvm::BinaryOperator& i);
  std::string cast_text(const llvm::CastInst& i);
  std::string intrinsic_text(const llvm::IntrinsicInst& i);
  std::string compare_text(const llvm::CmpInst& i);

  const llvm::Function& function_;
  std::string prefix_, problem_;
  TextLanguage language_;
  std::map<const llvm::Value*, std::string> names_;
  std::map<const llvm::BasicBlock*, int> numbers_;  // if there are several
  std::set<const llvm::Value*> named_;
  int next_ = 0;
};

// Return the printers of the two languages.
std::unique_ptr<FunctionPrinter> c_printer(const llvm::Function& function, const std::string& prefix);
std::unique_ptr<FunctionPrinter> glsl_printer(const llvm::Function& function, const std::string& prefix);

}  // namespace quernel::codegen
