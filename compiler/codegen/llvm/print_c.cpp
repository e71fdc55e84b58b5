// C's forms of LLVM instructions.
#include <llvm/ADT/SmallString.h>

#include <cstdio>

#include "codegen/llvm/function_printer.h"
#include "codegen/llvm/print_function.h"

namespace quernel::codegen {
namespace {

std::string unsigned_type(unsigned width) { return "uint" + std::to_string(width) + "_t"; }
std::string signed_type(unsigned width) { return "int" + std::to_string(width) + "_t"; }

std::string integer_text(const llvm::APInt& value, bool is_signed) {
  unsigned width = value.getBitWidth();
  if (width == 1) return value.isZero() ? "0" : "1";
  llvm::SmallString<24> digits;
  if (!is_signed) return unsigned_number(value, TextLanguage::kC);
  if (value.isMinSignedValue()) return "INT" + std::to_string(width) + "_MIN";
  value.toString(digits, 10, true);
  std::string text = width <= 32 ? std::string(digits) : "INT64_C(" + std::string(digits) + ")";
  return value.isNegative() ? "(" + text + ")" : text;
}

std::string float_text(const llvm::APFloat& value, bool is_f32) {
  if (!value.isFinite()) {
    std::string bits = integer_text(value.bitcastToAPInt(), false);
    return (is_f32 ? "qnl_f32_of(" : "qnl_f64_of(") + bits + ")";
  }
  char text[48];
  std::snprintf(text, sizeof text, "%a%s", is_f32 ? value.convertToFloat() : value.convertToDouble(),
                is_f32 ? "f" : "");
  return value.isNegative() ? "(" + std::string(text) + ")" : text;
}

class CFunctionPrinter : public FunctionPrinter {
 public:
  CFunctionPrinter(const llvm::Function& function, const std::string& prefix)
      : FunctionPrinter(function, prefix, TextLanguage::kC) {}

 private:
  std::string definition(const std::string& head, const std::string& body) override {
    // Without parameters C has (void): () declares none.
    std::string prototype = head.ends_with("()") ? head.substr(0, head.size() - 1) + "void)" : head;
    return "static inline " + prototype + " {\n" + body + "}\n";
  }
  std::string unused_parameter(const std::string& name) override { return "  (void)" + name + ";\n"; }
  std::string variable(const llvm::Type& type, const std::string& name, bool is_final) override {
    return (is_final && !type.isStructTy() ? "const " : "") + type_name(type) + " " + name;
  }
  void begin_block(const llvm::BasicBlock& block) override {
    if (!block.isEntryBlock()) body_ += label(block) + ":\n";
  }
  std::string jump_to(const llvm::BasicBlock& block) override { return "goto " + label(block) + ";"; }
  std::string label(const llvm::BasicBlock& block) const {
    return "block_" + std::to_string(number_of(block));
  }
  std::string constant(const llvm::Constant& value, bool is_signed) override {
    if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(&value))
      return integer_text(number->getValue(), is_signed);
    return float_text(llvm::cast<llvm::ConstantFP>(value).getValueAPF(), value.getType()->isFloatTy());
  }
  std::string as_signed(const llvm::Type& type, const std::string& text) override {
    return "(" + signed_type(width_of(type)) + ")" + text;
  }

  // C does arithmetic on narrow types in int.
  std::string in_words(const llvm::Type& type, const std::string& x) const override {
    return width_of(type) < 32 ? "(uint32_t)" + x : x;
  }
  std::string wrapped(const llvm::Type& type, const std::string& text) const override {
    return width_of(type) < 32 ? to_unsigned(type, text) : "(" + text + ")";
  }
  std::string to_unsigned(const llvm::Type& type, const std::string& text) const override {
    return "(" + unsigned_type(width_of(type)) + ")(" + text + ")";
  }
  std::string exclusive_or(const llvm::BinaryOperator& i) override {
    auto* ones = llvm::dyn_cast<llvm::ConstantInt>(i.getOperand(1));
    if (!ones || !ones->isMinusOne()) return FunctionPrinter::exclusive_or(i);
    unsigned width = width_of(*i.getType());
    std::string x = operand(i.getOperand(0));
    if (width == 1) return "(!" + x + ")";
    return width < 32 ? "(" + unsigned_type(width) + ")~" + x : "(~" + x + ")";
  }
  std::string truncated(const llvm::Type& to, const std::string& x) const override {
    return width_of(to) == 1 ? "(int)(" + x + " & 1u)" : converted(spelling_, type_name(to), x);
  }
  std::string all_bits(const llvm::Type& to, const std::string& bit) override {
    return to_unsigned(to, "0u - " + converted(spelling_, unsigned_type(width_of(to)), bit));
  }
  std::string sign_extended(const llvm::Type& to, const std::string& x) const override {
    return converted(spelling_, unsigned_type(width_of(to)), x);
  }
  std::string whole(const llvm::Type& to, const std::string& x, bool is_signed) const override {
    return converted(spelling_, type_name(to),
                     is_signed ? converted(spelling_, signed_type(width_of(to)), x) : x);
  }
  std::string saturated(const llvm::IntrinsicInst& i, bool is_signed) override {
    unsigned width = width_of(*i.getType());
    bool is_f32 = i.getArgOperand(0)->getType()->isFloatTy();
    std::string x = operand(i.getArgOperand(0)), to = unsigned_type(width), suffix = is_f32 ? "f" : "";
    std::string end = "0x1p" + std::to_string(is_signed ? width - 1 : width) + suffix;
    std::string largest = (is_signed ? "INT" : "UINT") + std::to_string(width) + "_MAX";
    if (!is_signed)
      return "(!(" + x + " > 0) ? 0 : " + x + " >= " + end + " ? " + largest + " : (" + to + ")" + x + ")";
    std::string smallest = "INT" + std::to_string(width) + "_MIN";
    return "(" + to + ")(" + x + " != " + x + " ? 0 : " + x + " <= -" + end + " ? " + smallest + " : " + x +
           " >= " + end + " ? " + largest + " : (" + signed_type(width) + ")" + x + ")";
  }
  std::string float_function(llvm::Intrinsic::ID id, bool is_f32) const override {
    std::string type = is_f32 ? "_f32" : "_f64";
    if (id == llvm::Intrinsic::fma) return "qnl_fma" + type;
    if (id == llvm::Intrinsic::sqrt) return "qnl_sqrt" + type;
    if (id == llvm::Intrinsic::fabs) return "qnl_abs" + type;
    return id == llvm::Intrinsic::copysign ? "qnl_copy_sign" + type : "";
  }
};

}  // namespace

std::unique_ptr<FunctionPrinter> c_printer(const llvm::Function& function, const std::string& prefix) {
  return std::make_unique<CFunctionPrinter>(function, prefix);
}

}  // namespace quernel::codegen
