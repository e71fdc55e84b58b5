#include "codegen/llvm/print_c.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/IR/Module.h>

#include <cstdio>

#include "codegen/llvm/function_printer.h"

namespace quernel::codegen {
namespace {

std::string unsigned_type(unsigned width) { return "uint" + std::to_string(width) + "_t"; }
std::string signed_type(unsigned width) { return "int" + std::to_string(width) + "_t"; }

std::string integer_text(const llvm::APInt& value, bool is_signed) {
  unsigned width = value.getBitWidth();
  if (width == 1) return value.isZero() ? "0" : "1";
  llvm::SmallString<24> digits;
  if (!is_signed) {
    value.toString(digits, 10, false);
    if (width <= 16) return std::string(digits);
    return width <= 32 ? std::string(digits) + "u" : "UINT64_C(" + std::string(digits) + ")";
  }
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
  CFunctionPrinter(const llvm::Function& function, std::string prefix)
      : FunctionPrinter(function, std::move(prefix), "codegen-c") {}

 private:
  std::string type_name(const llvm::Type& type) override { return c_type_of(type); }
  std::string definition(const std::string& head, const std::string& body) override {
    // Without parameters C has (void): () declares none.
    std::string prototype = head.ends_with("()") ? head.substr(0, head.size() - 1) + "void)" : head;
    return "static inline " + prototype + " {\n" + body + "}\n";
  }
  std::string unused_parameter(const std::string& name) override { return "  (void)" + name + ";\n"; }
  std::string variable(const llvm::Type& type, const std::string& name, bool is_final) override {
    return (is_final && !type.isStructTy() ? "const " : "") + c_type_of(type) + " " + name;
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

  // The bits that the type has, of arithmetic that C does in a wider one.
  static std::string wrapped(const llvm::Type& type, const std::string& text) {
    unsigned width = width_of(type);
    return width < 32 ? "(" + unsigned_type(width) + ")(" + text + ")" : "(" + text + ")";
  }

  std::string binary_text(const llvm::BinaryOperator& i) override {
    const llvm::Type& type = *i.getType();
    const llvm::Value *a = i.getOperand(0), *b = i.getOperand(1);
    std::string x = operand(a), y = operand(b);
    auto infix = [&](const char* op) { return "(" + x + " " + op + " " + y + ")"; };
    using llvm::Instruction;
    if (type.isFloatingPointTy()) {
      switch (i.getOpcode()) {
        case Instruction::FAdd:
          return infix("+");
        case Instruction::FSub:
          return infix("-");
        case Instruction::FMul:
          return infix("*");
        case Instruction::FDiv:
          return infix("/");
        default:
          fail(i);
          return "0";
      }
    }
    unsigned width = width_of(type);
    if (width == 1 && i.getOpcode() == Instruction::Xor)
      if (auto* one = llvm::dyn_cast<llvm::ConstantInt>(b); one && one->isOne()) return "(!" + x + ")";
    bool narrow = width < 32;
    std::string wide = narrow ? "(uint32_t)" : "";
    auto in_words = [&](const char* op) { return wrapped(type, wide + x + " " + op + " " + y); };
    auto in_signed = [&](const char* op) {
      return "(" + unsigned_type(width) + ")(" + signed_operand(a) + " " + op + " " + signed_operand(b) + ")";
    };
    switch (i.getOpcode()) {
      case Instruction::Add:
        return in_words("+");
      case Instruction::Sub:
        return in_words("-");
      case Instruction::Mul:
        return in_words("*");
      case Instruction::And:
        return infix("&");
      case Instruction::Or:
        return infix("|");
      case Instruction::Xor:
        if (auto* ones = llvm::dyn_cast<llvm::ConstantInt>(b); ones && ones->isMinusOne())
          return narrow ? "(" + unsigned_type(width) + ")~" + x : "(~" + x + ")";
        return infix("^");
      case Instruction::Shl:
        return in_words("<<");
      case Instruction::LShr:
        return infix(">>");
      case Instruction::AShr:
        return "(" + unsigned_type(width) + ")(" + signed_operand(a) + " >> " + y + ")";
      case Instruction::UDiv:
        return infix("/");
      case Instruction::URem:
        return infix("%");
      case Instruction::SDiv:
        return in_signed("/");
      case Instruction::SRem:
        return in_signed("%");
      default:
        fail(i);
        return "0";
    }
  }

  std::string cast_text(const llvm::CastInst& i) override {
    const llvm::Value* v = i.getOperand(0);
    const llvm::Type &from = *v->getType(), &to = *i.getType();
    std::string x = operand(v), plain = "(" + c_type_of(to) + ")" + x;
    switch (i.getOpcode()) {
      case llvm::Instruction::Trunc:
        return width_of(to) == 1 ? "(int)(" + x + " & 1u)" : plain;
      case llvm::Instruction::ZExt:
      case llvm::Instruction::FPExt:
      case llvm::Instruction::FPTrunc:
      case llvm::Instruction::UIToFP:
      case llvm::Instruction::FPToUI:
        return plain;
      case llvm::Instruction::SExt:
        if (width_of(from) == 1)
          return "(" + unsigned_type(width_of(to)) + ")(0u - (" + unsigned_type(width_of(to)) + ")" + x + ")";
        return "(" + unsigned_type(width_of(to)) + ")" + signed_operand(v);
      case llvm::Instruction::SIToFP:
        return "(" + c_type_of(to) + ")" + signed_operand(v);
      case llvm::Instruction::FPToSI:
        return "(" + unsigned_type(width_of(to)) + ")(" + signed_type(width_of(to)) + ")" + x;
      case llvm::Instruction::BitCast:
        if (from.isFloatTy()) return "qnl_bits_f32(" + x + ")";
        if (from.isDoubleTy()) return "qnl_bits_f64(" + x + ")";
        if (to.isFloatTy()) return "qnl_f32_of(" + x + ")";
        if (to.isDoubleTy()) return "qnl_f64_of(" + x + ")";
        break;
      default:
        break;
    }
    fail(i);
    return "0";
  }

  // Float to integer: what is out of range becomes the nearest, NaN 0.
  std::string saturating_text(const llvm::IntrinsicInst& i, bool is_signed) {
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

  std::string intrinsic_text(const llvm::IntrinsicInst& i) override {
    const llvm::Type& type = *i.getType();
    auto argument = [&](unsigned n) { return operand(i.getArgOperand(n)); };
    auto on_floats = [&](const char* name, unsigned count) {
      std::string text = std::string("qnl_") + name + (type.isFloatTy() ? "_f32(" : "_f64(");
      for (unsigned n = 0; n < count; ++n) text += (n ? ", " : "") + argument(n);
      return text + ")";
    };
    auto extreme = [&](const char* op, bool is_signed) {
      return "(" + operand_as(i.getArgOperand(0), is_signed) + " " + op + " " +
             operand_as(i.getArgOperand(1), is_signed) + " ? " + argument(0) + " : " + argument(1) + ")";
    };
    switch (i.getIntrinsicID()) {
      case llvm::Intrinsic::fma:
        return on_floats("fma", 3);
      case llvm::Intrinsic::sqrt:
        return on_floats("sqrt", 1);
      case llvm::Intrinsic::fabs:
        return on_floats("abs", 1);
      case llvm::Intrinsic::copysign:
        return on_floats("copy_sign", 2);
      case llvm::Intrinsic::smax:
        return extreme(">", true);
      case llvm::Intrinsic::smin:
        return extreme("<", true);
      case llvm::Intrinsic::umax:
        return extreme(">", false);
      case llvm::Intrinsic::umin:
        return extreme("<", false);
      case llvm::Intrinsic::abs: {
        std::string x = argument(0), zero = width_of(type) == 64 ? "UINT64_C(0)" : "0u";
        return wrapped(type, signed_operand(i.getArgOperand(0)) + " < 0 ? " + zero + " - " + x + " : " + x);
      }
      case llvm::Intrinsic::fptosi_sat:
        return saturating_text(i, true);
      case llvm::Intrinsic::fptoui_sat:
        return saturating_text(i, false);
      case llvm::Intrinsic::fshl:  // the count may be 0
        return "qnl_funnel_shift_u" + std::to_string(width_of(type)) + "(" + argument(0) + ", " +
               argument(1) + ", " + argument(2) + ")";
      case llvm::Intrinsic::ctlz:
        return "qnl_leading_zeros_u" + std::to_string(width_of(type)) + "(" + argument(0) + ")";
      default:
        fail(i);
        return "0";
    }
  }
};

}  // namespace

std::string c_type_of(const llvm::Type& type) {
  if (type.isFloatTy()) return "float";
  if (type.isDoubleTy()) return "double";
  if (type.isStructTy()) {
    std::string name = "qnl";
    for (unsigned i = 0; i < type.getStructNumElements(); ++i)
      name += "_" + c_type_of(*type.getStructElementType(i));
    return name;
  }
  return type.isIntegerTy(1) ? "int" : unsigned_type(type.getIntegerBitWidth());
}

Expected<std::string> print_c(const llvm::Function& function, const std::string& name,
                              const std::string& prefix) {
  return CFunctionPrinter(function, prefix).run(name);
}

Expected<std::string> print_c(const llvm::GlobalVariable& table, const std::string& prefix) {
  auto* data = llvm::dyn_cast<llvm::ConstantDataSequential>(table.getInitializer());
  if (!data || !data->getElementType()->isIntegerTy())
    return internal_error("expected a table of integers, found '" + table.getName().str() + "'", {},
                          "codegen-c");
  std::string text = "static const " + c_type_of(*data->getElementType()) + " " + prefix +
                     table.getName().str() + "[" + std::to_string(data->getNumElements()) + "] = {";
  for (unsigned i = 0; i < data->getNumElements(); ++i)
    text += (i % 4 == 0 ? "\n    " : " ") + integer_text(data->getElementAsAPInt(i), false) + ",";
  return text + "};\n";
}

}  // namespace quernel::codegen
