#include "codegen/llvm/function_printer.h"

#include <llvm/Support/raw_ostream.h>

#include "codegen/llvm/print_function.h"
#include "codegen/text/if_text.h"

namespace quernel::codegen {
namespace {
constexpr size_t kLongestOperand = 72;  // characters; what is longer gets a name
}  // namespace

Expected<std::string> FunctionPrinter::run(const std::string& name) {
  std::string parameters;
  for (const llvm::Argument& argument : function_.args()) {
    names_[&argument] = "x" + std::to_string(argument.getArgNo());
    parameters += (parameters.empty() ? "" : ", ") + type_name(*argument.getType()) + " " + names_[&argument];
  }
  choose_names();
  for (const llvm::BasicBlock& block : function_) print_block(block);
  if (!numbers_.empty()) body_ = blocks(body_);
  std::string unused;
  for (const llvm::Argument& argument : function_.args())
    if (argument.use_empty()) unused += unused_parameter(names_[&argument]);
  if (!problem_.empty()) return internal_error(problem_, {}, pass_of(language_));
  std::string head = type_name(*function_.getReturnType()) + " " + name + "(" + parameters + ")";
  return definition(head, declarations_ + unused + body_);
}

// Instructions that stand where they are used: of one use, in the same block, and not a thing that their
// user writes twice.
void FunctionPrinter::choose_names() {
  for (const llvm::BasicBlock& block : function_)
    for (const llvm::Instruction& i : block) {
      if (repeats_operands(i))
        for (const llvm::Value* operand : i.operand_values()) named_.insert(operand);
      if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&i)) {
        std::string name = "v" + std::to_string(next_++);
        names_[phi] = name;
        declarations_ += "  " + variable(*phi->getType(), name, false) + ";\n  " +
                         variable(*phi->getType(), name + "_next", false) + ";\n";
      }
    }
  int number = 0;
  if (function_.size() > 1)
    for (const llvm::BasicBlock& block : function_) numbers_[&block] = number++;
}

bool FunctionPrinter::repeats_operands(const llvm::Instruction& i) const {
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

void FunctionPrinter::fail(const llvm::Instruction& i) {
  if (!problem_.empty()) return;
  llvm::raw_string_ostream(problem_) << "an instruction has no form in the language: " << i;
}

void FunctionPrinter::print_block(const llvm::BasicBlock& block) {
  if (!numbers_.empty()) begin_block(block);
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
    if (auto* insert = llvm::dyn_cast<llvm::InsertValueInst>(&i)) {
      const llvm::Value* from = insert->getAggregateOperand();
      std::string member = ".m" + std::to_string(insert->getIndices()[0]) + " = " +
                           operand(insert->getInsertedValueOperand()) + ";";
      if (llvm::isa<llvm::InsertValueInst>(from) && from->hasOneUse()) {
        names_[&i] = names_[from];
        line(names_[&i] + member);
        continue;
      }
      std::string whole = "v" + std::to_string(next_++);
      names_[&i] = whole;
      std::string declaration = variable(*i.getType(), whole, false) + ";";
      if (numbers_.empty())
        line(declaration);
      else
        declarations_ += "  " + declaration + "\n";
      if (!llvm::isa<llvm::UndefValue>(from)) line(whole + " = " + operand(from) + ";");
      line(whole + member);
      continue;
    }
    std::string text = expression(i);
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
void FunctionPrinter::define(const llvm::Instruction& i, const std::string& text) {
  std::string name = "v" + std::to_string(next_++);
  names_[&i] = name;
  if (numbers_.empty()) return line(variable(*i.getType(), name, true) + " = " + text + ";");
  declarations_ += "  " + variable(*i.getType(), name, false) + ";\n";
  line(name + " = " + text + ";");
}

std::string FunctionPrinter::jump(const llvm::BasicBlock* from, const llvm::BasicBlock* to) {
  std::string text;
  for (const llvm::PHINode& phi : to->phis())
    text += names_[&phi] + "_next = " + operand(phi.getIncomingValueForBlock(from)) + "; ";
  return text + jump_to(*to);
}

void FunctionPrinter::terminator(const llvm::Instruction& i) {
  if (auto* ret = llvm::dyn_cast<llvm::ReturnInst>(&i))
    return line("return " + operand(ret->getReturnValue()) + ";");
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(&i);
  if (!branch) return fail(i);
  if (!branch->isConditional()) return line(jump(i.getParent(), branch->getSuccessor(0)));
  line(if_text(operand(branch->getCondition())) + " {");
  line("  " + jump(i.getParent(), branch->getSuccessor(0)));
  line("}");
  line(jump(i.getParent(), branch->getSuccessor(1)));
}

std::string FunctionPrinter::operand_as(const llvm::Value* v, bool is_signed) {
  if (llvm::isa<llvm::ConstantInt>(v) || llvm::isa<llvm::ConstantFP>(v))
    return constant(*llvm::cast<llvm::Constant>(v), is_signed);
  if (auto* none = llvm::dyn_cast<llvm::UndefValue>(v); none && !none->getType()->isStructTy())
    return constant(*llvm::Constant::getNullValue(none->getType()), is_signed);
  auto it = names_.find(v);
  if (it == names_.end()) {
    if (auto* i = llvm::dyn_cast<llvm::Instruction>(v)) fail(*i);
    return "0";
  }
  return is_signed ? as_signed(*v->getType(), it->second) : it->second;
}

std::string FunctionPrinter::expression(const llvm::Instruction& i) {
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
      return prefix_ + place->getPointerOperand()->getName().str() + "[" +
             as_count(operand(place->getOperand(1))) + "]";
  }
  fail(i);
  return "0";
}

std::string FunctionPrinter::type_name(const llvm::Type& type) const { return type_of(type, language_); }

std::string FunctionPrinter::exclusive_or(const llvm::BinaryOperator& i) {
  bool is_bit = width_of(*i.getType()) == 1;
  return infix_text(operand(i.getOperand(0)), is_bit ? spelling_.differ : "^", operand(i.getOperand(1)));
}

std::string FunctionPrinter::signed_remainder(const llvm::Type& type, const std::string& a,
                                              const std::string& b) const {
  return to_unsigned(type, a + " % " + b);
}

std::string FunctionPrinter::binary_text(const llvm::BinaryOperator& i) {
  const llvm::Type& type = *i.getType();
  const llvm::Value *a = i.getOperand(0), *b = i.getOperand(1);
  std::string x = operand(a), y = operand(b);
  auto in_words_text = [&](const char* op, const std::string& right) {
    return wrapped(type, in_words(type, x) + " " + op + " " + right);
  };
  auto on_bits = [&](const char* of_truth, const char* of_words) {
    return infix_text(x, width_of(type) == 1 ? of_truth : of_words, y);
  };
  using llvm::Instruction;
  switch (i.getOpcode()) {
    case Instruction::FAdd:
      return infix_text(x, "+", y);
    case Instruction::FSub:
      return infix_text(x, "-", y);
    case Instruction::FMul:
      return infix_text(x, "*", y);
    case Instruction::FDiv:
    case Instruction::UDiv:
      return infix_text(x, "/", y);
    case Instruction::URem:
      return infix_text(x, "%", y);
    case Instruction::Add:
      return in_words_text("+", y);
    case Instruction::Sub:
      return in_words_text("-", y);
    case Instruction::Mul:
      return in_words_text("*", y);
    case Instruction::And:
      return on_bits(spelling_.both, "&");
    case Instruction::Or:
      return on_bits(spelling_.either, "|");
    case Instruction::Xor:
      return exclusive_or(i);
    case Instruction::Shl:
      return in_words_text("<<", as_count(y));
    case Instruction::LShr:
      return infix_text(x, ">>", as_count(y));
    case Instruction::AShr:
      return to_unsigned(type, signed_operand(a) + " >> " + as_count(y));
    case Instruction::SDiv:
      return to_unsigned(type, signed_operand(a) + " / " + signed_operand(b));
    case Instruction::SRem:
      return signed_remainder(type, signed_operand(a), signed_operand(b));
    default:
      fail(i);
      return "0";
  }
}

std::string FunctionPrinter::cast_text(const llvm::CastInst& i) {
  const llvm::Value* v = i.getOperand(0);
  const llvm::Type &from = *v->getType(), &to = *i.getType();
  std::string x = operand(v);
  switch (i.getOpcode()) {
    case llvm::Instruction::Trunc:
      return truncated(to, x);
    case llvm::Instruction::ZExt:
    case llvm::Instruction::FPExt:
    case llvm::Instruction::FPTrunc:
    case llvm::Instruction::UIToFP:
      return converted(spelling_, type_name(to), x);
    case llvm::Instruction::SIToFP:
      return converted(spelling_, type_name(to), signed_operand(v));
    case llvm::Instruction::SExt:
      return width_of(from) == 1 ? all_bits(to, x) : sign_extended(to, signed_operand(v));
    case llvm::Instruction::FPToUI:
      return whole(to, x, false);
    case llvm::Instruction::FPToSI:
      return whole(to, x, true);
    case llvm::Instruction::BitCast:
      return bits(i);
    default:
      fail(i);
      return "0";
  }
}

std::string FunctionPrinter::bits(const llvm::CastInst& i) {
  const llvm::Type &from = *i.getOperand(0)->getType(), &to = *i.getType();
  std::string x = "(" + operand(i.getOperand(0)) + ")";
  if (from.isFloatTy()) return spelling_.bits_of_f32 + x;
  if (from.isDoubleTy()) return spelling_.bits_of_f64 + x;
  if (to.isFloatTy()) return spelling_.f32_of_bits + x;
  if (to.isDoubleTy()) return spelling_.f64_of_bits + x;
  fail(i);
  return "0";
}

std::string FunctionPrinter::intrinsic_text(const llvm::IntrinsicInst& i) {
  llvm::Type* type = i.getType();
  auto argument = [&](unsigned n) { return operand(i.getArgOperand(n)); };
  auto call = [&](const std::string& name) {
    std::string text;
    for (const llvm::Use& operand_of_call : i.args())
      text += (text.empty() ? "" : ", ") + operand(operand_of_call);
    return name + "(" + text + ")";
  };
  auto extreme = [&](const char* op, bool is_signed) {
    return "(" + ordered(i.getArgOperand(0), is_signed) + " " + op + " " +
           ordered(i.getArgOperand(1), is_signed) + " ? " + argument(0) + " : " + argument(1) + ")";
  };
  switch (i.getIntrinsicID()) {
    case llvm::Intrinsic::smax:
      return extreme(">", true);
    case llvm::Intrinsic::smin:
      return extreme("<", true);
    case llvm::Intrinsic::umax:
      return extreme(">", false);
    case llvm::Intrinsic::umin:
      return extreme("<", false);
    case llvm::Intrinsic::abs: {
      auto* word = llvm::Type::getIntNTy(type->getContext(), std::max(width_of(*type), 32U));
      std::string x = argument(0), zero = constant(*llvm::Constant::getNullValue(word), false);
      return wrapped(*type, ordered(i.getArgOperand(0), true) + " < " +
                                ordered(llvm::Constant::getNullValue(type), true) + " ? " + zero + " - " + x +
                                " : " + x);
    }
    case llvm::Intrinsic::fptosi_sat:
      return saturated(i, true);
    case llvm::Intrinsic::fptoui_sat:
      return saturated(i, false);
    case llvm::Intrinsic::fshl:  // the count may be 0
      return call("qnl_funnel_shift_u" + std::to_string(width_of(*type)));
    case llvm::Intrinsic::ctlz:
      return "qnl_leading_zeros_u" + std::to_string(width_of(*type)) + "(" + argument(0) + ")";
    default:
      if (std::string name = float_function(i.getIntrinsicID(), type->isFloatTy()); !name.empty())
        return call(name);
      fail(i);
      return "0";
  }
}

std::string FunctionPrinter::compare_text(const llvm::CmpInst& i) {
  using Predicate = llvm::CmpInst;
  bool is_signed = i.isSigned() && i.getOperand(0)->getType()->isIntegerTy();
  std::string a = ordered(i.getOperand(0), is_signed), b = ordered(i.getOperand(1), is_signed);
  auto infix = [&](const char* op) { return infix_text(a, op, b); };
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
      if (a == b) return infix("!=");
      return infix_text(infix_text(a, "!=", a), spelling_.either, infix_text(b, "!=", b));
    case Predicate::FCMP_ORD:
      return infix_text(infix_text(a, "==", a), spelling_.both, infix_text(b, "==", b));
    case Predicate::FCMP_ONE:
      return infix_text(infix("<"), spelling_.either, infix(">"));
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

}  // namespace quernel::codegen
