#include "codegen/llvm/print_glsl.h"

#include <llvm/IR/Module.h>

#include <bit>
#include <cmath>
#include <cstdio>

#include "codegen/llvm/function_printer.h"
#include "codegen/llvm/glsl_float.h"

namespace quernel::codegen {
namespace {

std::string unsigned_text(uint64_t value, unsigned width) {
  return std::to_string(value) + (width == 64 ? "ul" : "u");
}

std::string mask_of(unsigned width) { return unsigned_text((uint64_t{1} << width) - 1, 32); }

// The bits that the type has, of arithmetic in a wider one.
std::string wrapped(const llvm::Type& type, const std::string& text) {
  unsigned width = type.getIntegerBitWidth();
  return width < 32 ? "((" + text + ") & " + mask_of(width) + ")" : "(" + text + ")";
}

class GlslFunctionPrinter : public FunctionPrinter {
 public:
  GlslFunctionPrinter(const llvm::Function& function, std::string prefix)
      : FunctionPrinter(function, std::move(prefix), "codegen-spirv") {}

 private:
  std::string type_name(const llvm::Type& type) override { return glsl_type_of(type); }
  std::string definition(const std::string& head, const std::string& body) override {
    return head + " {\n" + body + "}\n";
  }
  // Floats are computed as they are written: not fused, not rearranged.
  std::string variable(const llvm::Type& type, const std::string& name, bool) override {
    return (type.isFloatingPointTy() ? "precise " : "") + glsl_type_of(type) + " " + name;
  }
  // There are no jumps: a loop goes from block to block by their numbers.
  void begin_block(const llvm::BasicBlock& block) override {
    if (!block.isEntryBlock()) line("}");
    line("if (block == " + std::to_string(number_of(block)) + ") {");
  }
  std::string jump_to(const llvm::BasicBlock& block) override {
    return "block = " + std::to_string(number_of(block)) + "; continue;";
  }
  std::string blocks(const std::string& text) override {
    return "  int block = 0;\n  for (;;) {\n" + text + "  }\n  }\n";
  }
  std::string subscript(const std::string& text) const override { return "uint(" + text + ")"; }
  std::string logical(const char* op) const override { return std::string(op) + op; }
  std::string constant(const llvm::Constant& value, bool is_signed) override {
    if (auto* number = llvm::dyn_cast<llvm::ConstantFP>(&value))
      return glsl_float(number->getValueAPF().bitcastToAPInt().getZExtValue(), value.getType()->isFloatTy());
    const llvm::APInt& number = llvm::cast<llvm::ConstantInt>(value).getValue();
    if (number.getBitWidth() == 1) return number.isZero() ? "false" : "true";
    if (!is_signed) return unsigned_text(number.getZExtValue(), number.getBitWidth());
    if (number.isMinSignedValue()) return as_signed(*value.getType(), constant(value, false));
    return "(" + std::to_string(number.getSExtValue()) + (number.getBitWidth() == 64 ? "l)" : ")");
  }
  std::string as_signed(const llvm::Type& type, const std::string& text) override {
    unsigned width = width_of(type);
    if (width < 32) return "bitfieldExtract(int(" + text + "), 0, " + std::to_string(width) + ")";
    return (width == 64 ? "int64_t(" : "int(") + text + ")";
  }
  std::string to_unsigned(const llvm::Type& type, const std::string& text) {
    return wrapped(type, (width_of(type) == 64 ? "uint64_t(" : "uint(") + text + ")");
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
    bool is_bit = width_of(type) == 1;
    auto in_words = [&](const char* op) { return wrapped(type, x + " " + op + " " + y); };
    auto in_signed = [&](const char* op) {
      return to_unsigned(type, signed_operand(a) + " " + op + " " + signed_operand(b));
    };
    switch (i.getOpcode()) {
      case Instruction::Add:
        return in_words("+");
      case Instruction::Sub:
        return in_words("-");
      case Instruction::Mul:
        return in_words("*");
      case Instruction::And:
        return infix(is_bit ? "&&" : "&");
      case Instruction::Or:
        return infix(is_bit ? "||" : "|");
      case Instruction::Xor:
        return infix(is_bit ? "^^" : "^");
      case Instruction::Shl:
        return wrapped(type, x + " << uint(" + y + ")");
      case Instruction::LShr:
        return "(" + x + " >> uint(" + y + "))";
      case Instruction::AShr:
        return to_unsigned(type, signed_operand(a) + " >> uint(" + y + ")");
      case Instruction::UDiv:
        return infix("/");
      case Instruction::URem:
        return infix("%");
      case Instruction::SDiv:
        return in_signed("/");
      case Instruction::SRem: {  // GLSL's % is undefined for negative operands
        std::string p = signed_operand(a), q = signed_operand(b);
        return to_unsigned(type, p + " - (" + p + " / " + q + ") * " + q);
      }
      default:
        fail(i);
        return "0";
    }
  }

  std::string cast_text(const llvm::CastInst& i) override {
    const llvm::Value* v = i.getOperand(0);
    const llvm::Type &from = *v->getType(), &to = *i.getType();
    std::string x = operand(v), plain = glsl_type_of(to) + "(" + x + ")";
    switch (i.getOpcode()) {
      case llvm::Instruction::Trunc:
        if (width_of(to) == 1) return "((uint(" + x + ") & 1u) != 0u)";
        return width_of(to) < 32 ? "(uint(" + x + ") & " + mask_of(width_of(to)) + ")" : plain;
      case llvm::Instruction::ZExt:
      case llvm::Instruction::FPExt:
      case llvm::Instruction::FPTrunc:
      case llvm::Instruction::UIToFP:
        return plain;
      case llvm::Instruction::SExt:
        if (width_of(from) == 1)
          return "(" + x + " ? " + constant(*llvm::Constant::getAllOnesValue(i.getType()), false) + " : " +
                 constant(*llvm::Constant::getNullValue(i.getType()), false) + ")";
        return to_unsigned(to, signed_operand(v));
      case llvm::Instruction::SIToFP:
        return glsl_type_of(to) + "(" + signed_operand(v) + ")";
      case llvm::Instruction::FPToUI:
        return to_unsigned(to, x);
      case llvm::Instruction::FPToSI:
        return to_unsigned(to, (width_of(to) == 64 ? "int64_t(" : "int(") + x + ")");
      case llvm::Instruction::BitCast:
        if (from.isHalfTy()) return "packFloat2x16(f16vec2(" + x + ", float16_t(0.0)))";
        if (to.isHalfTy()) return "unpackFloat2x16(" + x + ").x";
        if (from.isFloatTy()) return "floatBitsToUint(" + x + ")";
        if (from.isDoubleTy()) return "doubleBitsToUint64(" + x + ")";
        if (to.isFloatTy()) return "uintBitsToFloat(" + x + ")";
        if (to.isDoubleTy()) return "uint64BitsToDouble(" + x + ")";
        break;
      default:
        break;
    }
    fail(i);
    return "0";
  }

  // Float to integer: what is out of range becomes the nearest, NaN 0.
  std::string saturating_text(const llvm::IntrinsicInst& i, bool is_signed) {
    llvm::Type* type = i.getType();
    unsigned width = width_of(*type);
    bool is_f32 = i.getArgOperand(0)->getType()->isFloatTy();
    std::string x = operand(i.getArgOperand(0));
    double limit = std::ldexp(1.0, static_cast<int>(is_signed ? width - 1 : width));
    auto number = [&](double value) {
      uint64_t bits =
          is_f32 ? std::bit_cast<uint32_t>(static_cast<float>(value)) : std::bit_cast<uint64_t>(value);
      return glsl_float(bits, is_f32);
    };
    auto integer = [&](const llvm::APInt& value) {
      return constant(*llvm::ConstantInt::get(type->getContext(), value), false);
    };
    llvm::APInt zero(width, 0);
    if (!is_signed)
      return "(!(" + x + " > 0.0) ? " + integer(zero) + " : " + x + " >= " + number(limit) + " ? " +
             integer(llvm::APInt::getMaxValue(width)) + " : " + to_unsigned(*type, x) + ")";
    std::string inside = to_unsigned(*type, (width == 64 ? "int64_t(" : "int(") + x + ")");
    return "(" + x + " != " + x + " ? " + integer(zero) + " : " + x + " <= " + number(-limit) + " ? " +
           integer(llvm::APInt::getSignedMinValue(width)) + " : " + x + " >= " + number(limit) + " ? " +
           integer(llvm::APInt::getSignedMaxValue(width)) + " : " + inside + ")";
  }

  std::string intrinsic_text(const llvm::IntrinsicInst& i) override {
    llvm::Type* type = i.getType();
    bool is_f32 = type->isFloatTy();
    auto argument = [&](unsigned n) { return operand(i.getArgOperand(n)); };
    auto extreme = [&](const char* op, bool is_signed) {
      return "(" + operand_as(i.getArgOperand(0), is_signed) + " " + op + " " +
             operand_as(i.getArgOperand(1), is_signed) + " ? " + argument(0) + " : " + argument(1) + ")";
    };
    auto of_width = [&](const char* name) {
      return std::string(name) + "_u" + std::to_string(width_of(*type)) + "(";
    };
    switch (i.getIntrinsicID()) {
      case llvm::Intrinsic::sqrt:
        return "sqrt(" + argument(0) + ")";
      case llvm::Intrinsic::fabs:
        return "abs(" + argument(0) + ")";
      case llvm::Intrinsic::copysign:
        return std::string(is_f32 ? "qnl_copy_sign_f32(" : "qnl_copy_sign_f64(") + argument(0) + ", " +
               argument(1) + ")";
      case llvm::Intrinsic::smax:
        return extreme(">", true);
      case llvm::Intrinsic::smin:
        return extreme("<", true);
      case llvm::Intrinsic::umax:
        return extreme(">", false);
      case llvm::Intrinsic::umin:
        return extreme("<", false);
      case llvm::Intrinsic::abs: {
        std::string x = argument(0), zero = constant(*llvm::Constant::getNullValue(type), false);
        return wrapped(*type, signed_operand(i.getArgOperand(0)) + " < 0 ? " + zero + " - " + x + " : " + x);
      }
      case llvm::Intrinsic::fptosi_sat:
        return saturating_text(i, true);
      case llvm::Intrinsic::fptoui_sat:
        return saturating_text(i, false);
      case llvm::Intrinsic::fshl:  // the count may be 0
        return of_width("qnl_funnel_shift") + argument(0) + ", " + argument(1) + ", " + argument(2) + ")";
      case llvm::Intrinsic::ctlz:
        return of_width("qnl_leading_zeros") + argument(0) + ")";
      default:
        fail(i);
        return "0";
    }
  }
};

}  // namespace

std::string glsl_type_of(const llvm::Type& type) {
  if (type.isHalfTy()) return "float16_t";
  if (type.isFloatTy()) return "float";
  if (type.isDoubleTy()) return "double";
  if (type.isStructTy()) {
    std::string name = "qnl";
    for (unsigned i = 0; i < type.getStructNumElements(); ++i)
      name += "_" + glsl_type_of(*type.getStructElementType(i));
    return name;
  }
  unsigned width = type.getIntegerBitWidth();
  return width == 1 ? "bool" : width == 64 ? "uint64_t" : "uint";
}

// What is not a normal number is written as its bits: compilers may read 0 or an error.
std::string glsl_float(uint64_t bits, bool is_f32) {
  double value = is_f32 ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                        : std::bit_cast<double>(bits);
  bool plain = value == 0 || (is_f32 ? std::isnormal(static_cast<float>(value)) : std::isnormal(value));
  if (!plain || (value == 0 && std::signbit(value)))
    return is_f32 ? "uintBitsToFloat(" + std::to_string(bits) + "u)"
                  : "uint64BitsToDouble(" + std::to_string(bits) + "ul)";
  char text[40];
  std::snprintf(text, sizeof text, is_f32 ? "%.9g" : "%.17g", value);
  std::string number = text;
  if (number.find_first_of(".e") == std::string::npos) number += ".0";
  if (!is_f32) number += "lf";
  return value < 0 ? "(" + number + ")" : number;
}

Expected<std::string> print_glsl(const llvm::Function& function, const std::string& name,
                                 const std::string& prefix) {
  return GlslFunctionPrinter(function, prefix).run(name);
}

Expected<std::string> print_glsl(const llvm::GlobalVariable& table, const std::string& prefix) {
  auto* data = llvm::dyn_cast<llvm::ConstantDataSequential>(table.getInitializer());
  if (!data || !data->getElementType()->isIntegerTy())
    return internal_error("expected a table of integers, found '" + table.getName().str() + "'", {},
                          "codegen-spirv");
  std::string type =
      glsl_type_of(*data->getElementType()) + "[" + std::to_string(data->getNumElements()) + "]";
  std::string text = "const " + type + " " + prefix + table.getName().str() + " = " + type + "(";
  for (unsigned i = 0; i < data->getNumElements(); ++i)
    text += (i == 0       ? "\n    "
             : i % 4 == 0 ? ",\n    "
                          : ", ") +
            unsigned_text(data->getElementAsInteger(i), data->getElementType()->getIntegerBitWidth());
  return text + ");\n";
}

}  // namespace quernel::codegen
