#include "codegen/llvm/print_c.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdio>
#include <map>
#include <set>

namespace quernel::codegen {
namespace {

constexpr size_t kLongestOperand = 72;  // characters; what is longer gets a name

unsigned width_of(const llvm::Type& type) { return type.getIntegerBitWidth(); }

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

class FunctionPrinter {
 public:
  FunctionPrinter(const llvm::Function& function, std::string prefix)
      : function_(function), prefix_(std::move(prefix)) {}

  Expected<std::string> run(const std::string& name) {
    std::string parameters;
    for (const llvm::Argument& argument : function_.args()) {
      names_[&argument] = "x" + std::to_string(argument.getArgNo());
      parameters +=
          (parameters.empty() ? "" : ", ") + c_type_of(*argument.getType()) + " " + names_[&argument];
    }
    choose_names();
    for (const llvm::BasicBlock& block : function_) print_block(block);
    for (const llvm::Argument& argument : function_.args())
      if (argument.use_empty()) declarations_ += "  (void)" + names_[&argument] + ";\n";
    if (!problem_.empty()) return internal_error(problem_, {}, "codegen-c");
    return "static inline " + c_type_of(*function_.getReturnType()) + " " + name + "(" + parameters +
           ") {\n" + declarations_ + body_ + "}\n";
  }

 private:
  // Instructions that stand where they are used: of one use, in the same block, and not a thing that their
  // user writes twice.
  void choose_names() {
    for (const llvm::BasicBlock& block : function_)
      for (const llvm::Instruction& i : block) {
        if (repeats_operands(i))
          for (const llvm::Value* operand : i.operand_values()) named_.insert(operand);
        if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&i)) {
          std::string name = "v" + std::to_string(next_++);
          names_[phi] = name;
          std::string type = c_type_of(*phi->getType());
          declarations_ += "  " + type + " " + name + ", " + name + "_next;\n";
        }
      }
    int label = 0;
    if (function_.size() > 1)
      for (const llvm::BasicBlock& block : function_) labels_[&block] = "block_" + std::to_string(label++);
  }

  static bool repeats_operands(const llvm::Instruction& i) {
    if (auto* compare = llvm::dyn_cast<llvm::FCmpInst>(&i)) {
      auto predicate = compare->getPredicate();
      return predicate == llvm::CmpInst::FCMP_UNO || predicate == llvm::CmpInst::FCMP_ORD ||
             predicate == llvm::CmpInst::FCMP_ONE;
    }
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (!call) return false;
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::fma:
      case llvm::Intrinsic::sqrt:
      case llvm::Intrinsic::fabs:
      case llvm::Intrinsic::copysign:
        return false;
      default:
        return true;
    }
  }

  void fail(const llvm::Instruction& i) {
    if (!problem_.empty()) return;
    llvm::raw_string_ostream(problem_) << "an instruction has no form in C: " << i;
  }

  void line(const std::string& text) { body_ += "  " + text + "\n"; }

  void print_block(const llvm::BasicBlock& block) {
    if (auto label = labels_.find(&block); label != labels_.end() && !block.isEntryBlock())
      body_ += label->second + ":\n";
    // Phis take their values together.
    for (const llvm::PHINode& phi : block.phis()) line(names_[&phi] + " = " + names_[&phi] + "_next;");
    for (const llvm::Instruction& i : block) {
      if (llvm::isa<llvm::PHINode>(i)) continue;
      if (i.isTerminator()) {
        terminator(i);
        continue;
      }
      if (i.getType()->isVoidTy()) return fail(i);
      if (i.use_empty() || llvm::isa<llvm::GetElementPtrInst>(i)) continue;
      std::string text = expression(i);
      if (auto* insert = llvm::dyn_cast<llvm::InsertValueInst>(&i)) {
        define(i, operand(insert->getAggregateOperand()));
        line(names_[&i] + ".m" + std::to_string(insert->getIndices()[0]) + " = " +
             operand(insert->getInsertedValueOperand()) + ";");
        continue;
      }
      const llvm::Instruction* user =
          i.hasOneUse() ? llvm::dyn_cast<llvm::Instruction>(*i.user_begin()) : nullptr;
      bool inside = user && user->getParent() == &block && !llvm::isa<llvm::PHINode>(user) &&
                    !llvm::isa<llvm::InsertValueInst>(user) && !named_.contains(&i) &&
                    !llvm::isa<llvm::CallInst>(i) && text.size() < kLongestOperand;
      if (inside)
        names_[&i] = text;
      else
        define(i, text);
    }
  }

  // Blocks are reached by jumps, which must not pass a declaration's initial value by.
  void define(const llvm::Instruction& i, const std::string& text) {
    std::string name = "v" + std::to_string(next_++), type = c_type_of(*i.getType());
    names_[&i] = name;
    if (labels_.empty())
      return line((i.getType()->isStructTy() ? "" : "const ") + type + " " + name + " = " + text + ";");
    declarations_ += "  " + type + " " + name + ";\n";
    line(name + " = " + text + ";");
  }

  std::string jump(const llvm::BasicBlock* from, const llvm::BasicBlock* to) {
    std::string text;
    for (const llvm::PHINode& phi : to->phis())
      text += names_[&phi] + "_next = " + operand(phi.getIncomingValueForBlock(from)) + "; ";
    return text + "goto " + labels_[to] + ";";
  }

  void terminator(const llvm::Instruction& i) {
    if (auto* ret = llvm::dyn_cast<llvm::ReturnInst>(&i))
      return line("return " + operand(ret->getReturnValue()) + ";");
    auto* branch = llvm::dyn_cast<llvm::BranchInst>(&i);
    if (!branch) return fail(i);
    if (!branch->isConditional()) return line(jump(i.getParent(), branch->getSuccessor(0)));
    line("if (" + operand(branch->getCondition()) + ") {");
    line("  " + jump(i.getParent(), branch->getSuccessor(0)));
    line("}");
    line(jump(i.getParent(), branch->getSuccessor(1)));
  }

  std::string operand(const llvm::Value* v) { return operand_as(v, false); }
  std::string signed_operand(const llvm::Value* v) { return operand_as(v, true); }
  std::string operand_as(const llvm::Value* v, bool is_signed) {
    if (auto* number = llvm::dyn_cast<llvm::ConstantInt>(v))
      return integer_text(number->getValue(), is_signed);
    if (auto* number = llvm::dyn_cast<llvm::ConstantFP>(v))
      return float_text(number->getValueAPF(), number->getType()->isFloatTy());
    if (llvm::isa<llvm::UndefValue>(v)) return v->getType()->isStructTy() ? "{0, 0}" : "0";
    auto it = names_.find(v);
    if (it == names_.end()) {
      if (auto* i = llvm::dyn_cast<llvm::Instruction>(v)) fail(*i);
      return "0";
    }
    return is_signed ? "(" + signed_type(width_of(*v->getType())) + ")" + it->second : it->second;
  }

  // The bits that the type has, of arithmetic that C does in a wider one.
  static std::string wrapped(const llvm::Type& type, const std::string& text) {
    unsigned width = width_of(type);
    return width < 32 ? "(" + unsigned_type(width) + ")(" + text + ")" : "(" + text + ")";
  }

  std::string expression(const llvm::Instruction& i) {
    if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&i)) return binary_text(*binary);
    if (auto* compare = llvm::dyn_cast<llvm::CmpInst>(&i)) return compare_text(*compare);
    if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&i)) return cast_text(*cast);
    if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i)) return intrinsic_text(*call);
    if (auto* negation = llvm::dyn_cast<llvm::UnaryOperator>(&i))
      return "(-" + operand(negation->getOperand(0)) + ")";
    if (auto* select = llvm::dyn_cast<llvm::SelectInst>(&i))
      return "(" + operand(select->getCondition()) + " ? " + operand(select->getTrueValue()) + " : " +
             operand(select->getFalseValue()) + ")";
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i)) {
      std::string text;
      for (const llvm::Use& argument : call->args()) text += (text.empty() ? "" : ", ") + operand(argument);
      return prefix_ + call->getCalledFunction()->getName().str() + "(" + text + ")";
    }
    if (auto* extract = llvm::dyn_cast<llvm::ExtractValueInst>(&i))
      return operand(extract->getAggregateOperand()) + ".m" + std::to_string(extract->getIndices()[0]);
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
      auto* place = llvm::dyn_cast<llvm::GetElementPtrInst>(load->getPointerOperand());
      if (place && place->getNumIndices() == 1 && place->getSourceElementType() == load->getType() &&
          llvm::isa<llvm::GlobalVariable>(place->getPointerOperand()))
        return prefix_ + place->getPointerOperand()->getName().str() + "[" + operand(place->getOperand(1)) +
               "]";
    }
    if (!llvm::isa<llvm::InsertValueInst>(i)) fail(i);
    return "0";
  }

  std::string binary_text(const llvm::BinaryOperator& i) {
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

  std::string compare_text(const llvm::CmpInst& i) {
    using Predicate = llvm::CmpInst;
    bool is_signed = i.isSigned() && i.getOperand(0)->getType()->isIntegerTy();
    std::string a = operand_as(i.getOperand(0), is_signed), b = operand_as(i.getOperand(1), is_signed);
    auto infix = [&](const char* op) { return "(" + a + " " + op + " " + b + ")"; };
    switch (i.getPredicate()) {
      case Predicate::ICMP_EQ:
      case Predicate::FCMP_OEQ:
        return infix("==");
      case Predicate::ICMP_NE:
      case Predicate::FCMP_UNE:
        return infix("!=");
      case Predicate::ICMP_SLT:
      case Predicate::ICMP_ULT:
      case Predicate::FCMP_OLT:
        return infix("<");
      case Predicate::ICMP_SLE:
      case Predicate::ICMP_ULE:
      case Predicate::FCMP_OLE:
        return infix("<=");
      case Predicate::ICMP_SGT:
      case Predicate::ICMP_UGT:
      case Predicate::FCMP_OGT:
        return infix(">");
      case Predicate::ICMP_SGE:
      case Predicate::ICMP_UGE:
      case Predicate::FCMP_OGE:
        return infix(">=");
      case Predicate::FCMP_UNO:
        return a == b ? "(" + a + " != " + a + ")" : "((" + a + " != " + a + ") | (" + b + " != " + b + "))";
      case Predicate::FCMP_ORD:
        return "((" + a + " == " + a + ") & (" + b + " == " + b + "))";
      case Predicate::FCMP_ONE:
        return "((" + a + " < " + b + ") | (" + a + " > " + b + "))";
      case Predicate::FCMP_UGE:
        return "(!" + infix("<") + ")";
      case Predicate::FCMP_UGT:
        return "(!" + infix("<=") + ")";
      case Predicate::FCMP_ULE:
        return "(!" + infix(">") + ")";
      case Predicate::FCMP_ULT:
        return "(!" + infix(">=") + ")";
      default:
        fail(i);
        return "0";
    }
  }

  std::string cast_text(const llvm::CastInst& i) {
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

  std::string intrinsic_text(const llvm::IntrinsicInst& i) {
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

  const llvm::Function& function_;
  std::string prefix_, declarations_, body_, problem_;
  std::map<const llvm::Value*, std::string> names_;
  std::map<const llvm::BasicBlock*, std::string> labels_;
  std::set<const llvm::Value*> named_;
  int next_ = 0;
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
  return type.isIntegerTy(1) ? "int" : unsigned_type(width_of(type));
}

Expected<std::string> print_c(const llvm::Function& function, const std::string& name,
                              const std::string& prefix) {
  return FunctionPrinter(function, prefix).run(name);
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
