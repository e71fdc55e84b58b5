// GLSL's forms of LLVM instructions: a bit is a bool, integers of 8 and 16 bits are a uint with zeros above.
#include <bit>
#include <cmath>

#include "codegen/llvm/function_printer.h"
#include "codegen/llvm/print_function.h"
#include "codegen/text/glsl_float.h"

namespace quernel::codegen {
namespace {

std::string unsigned_text(uint64_t value, unsigned width) {
  return std::to_string(value) + (width == 64 ? "ul" : "u");
}

std::string signed_type(unsigned width) { return width == 64 ? "int64_t" : "int"; }

class GlslFunctionPrinter : public FunctionPrinter {
 public:
  GlslFunctionPrinter(const llvm::Function& function, const std::string& prefix)
      : FunctionPrinter(function, prefix, TextLanguage::kGlsl) {}

 private:
  std::string definition(const std::string& head, const std::string& body) override {
    return head + " {\n" + body + "}\n";
  }
  // Floats are computed as they are written: not fused, not rearranged.
  std::string variable(const llvm::Type& type, const std::string& name, bool) override {
    return (type.isFloatingPointTy() ? "precise " : "") + type_name(type) + " " + name;
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
    return signed_type(width) + "(" + text + ")";
  }

  // Mesa 22.3's llvmpipe compares a 64-bit number that it knows to be a sign-extended 32-bit one with a constant as if
  // both were unsigned: shaders compare 64-bit numbers without a sign, their highest bits inverted.
  std::string ordered(const llvm::Value* v, bool is_signed) override {
    if (!is_signed || width_of(*v->getType()) < 64) return operand_as(v, is_signed);
    constexpr uint64_t kSign = uint64_t{1} << 63;
    if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(v))
      return unsigned_text(number->getValue().getZExtValue() ^ kSign, 64);
    return "(" + operand(v) + " ^ " + unsigned_text(kSign, 64) + ")";
  }

  std::string kept_bits(const llvm::Type& type, const std::string& text) const {
    return "(" + text + " & " + unsigned_text((uint64_t{1} << width_of(type)) - 1, 32) + ")";
  }
  std::string wrapped(const llvm::Type& type, const std::string& text) const override {
    std::string whole_text = "(" + text + ")";
    return width_of(type) < 32 ? kept_bits(type, whole_text) : whole_text;
  }
  std::string to_unsigned(const llvm::Type& type, const std::string& text) const override {
    return wrapped(type, type_name(type) + "(" + text + ")");
  }
  std::string as_count(const std::string& x) const override { return "uint(" + x + ")"; }
  // GLSL's % is undefined for negative operands.
  std::string signed_remainder(const llvm::Type& type, const std::string& a,
                               const std::string& b) const override {
    return to_unsigned(type, a + " - (" + a + " / " + b + ") * " + b);
  }
  std::string truncated(const llvm::Type& to, const std::string& x) const override {
    if (width_of(to) == 1) return "((uint(" + x + ") & 1u) != 0u)";
    return width_of(to) < 32 ? kept_bits(to, "uint(" + x + ")") : type_name(to) + "(" + x + ")";
  }
  std::string all_bits(const llvm::Type& to, const std::string& bit) override {
    auto* type = llvm::Type::getIntNTy(to.getContext(), width_of(to));
    return "(" + bit + " ? " + constant(*llvm::Constant::getAllOnesValue(type), false) + " : " +
           constant(*llvm::Constant::getNullValue(type), false) + ")";
  }
  std::string sign_extended(const llvm::Type& to, const std::string& x) const override {
    return to_unsigned(to, x);
  }
  std::string whole(const llvm::Type& to, const std::string& x, bool is_signed) const override {
    return to_unsigned(to, is_signed ? signed_type(width_of(to)) + "(" + x + ")" : x);
  }
  std::string bits(const llvm::CastInst& i) override {
    std::string x = operand(i.getOperand(0));
    if (i.getOperand(0)->getType()->isHalfTy()) return "packFloat2x16(f16vec2(" + x + ", float16_t(0.0)))";
    return i.getType()->isHalfTy() ? "unpackFloat2x16(" + x + ").x" : FunctionPrinter::bits(i);
  }
  std::string saturated(const llvm::IntrinsicInst& i, bool is_signed) override {
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
             integer(llvm::APInt::getMaxValue(width)) + " : " + whole(*type, x, false) + ")";
    return "(" + x + " != " + x + " ? " + integer(zero) + " : " + x + " <= " + number(-limit) + " ? " +
           integer(llvm::APInt::getSignedMinValue(width)) + " : " + x + " >= " + number(limit) + " ? " +
           integer(llvm::APInt::getSignedMaxValue(width)) + " : " + whole(*type, x, true) + ")";
  }
  std::string float_function(llvm::Intrinsic::ID id, bool is_f32) const override {
    if (id == llvm::Intrinsic::sqrt) return "sqrt";
    if (id == llvm::Intrinsic::fabs) return "abs";
    if (id != llvm::Intrinsic::copysign) return "";
    return is_f32 ? "qnl_copy_sign_f32" : "qnl_copy_sign_f64";
  }
};

}  // namespace

std::unique_ptr<FunctionPrinter> glsl_printer(const llvm::Function& function, const std::string& prefix) {
  return std::make_unique<GlslFunctionPrinter>(function, prefix);
}

}  // namespace quernel::codegen
