#include "codegen/llvm/elementary_functions.h"

#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

#include <functional>
#include <set>
#include <vector>

#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/print_function.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;

namespace {

constexpr const char* kPrefix = "op_";

std::string hex(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(bits));
  return text;
}

// What is different has different names.
std::string name_for(const loop::ExprNode& e) {
  auto dtype = [](const loop::ExprNode& node) { return std::string(quernel::to_string(node.type.dtype)); };
  std::string name = kPrefix, operand = dtype(*e.args[0]);
  switch (e.kind) {
    case ExprKind::kUnary:
      name += std::string(to_string(e.unary)) + "_" + operand;
      break;
    case ExprKind::kBinary:
      name += std::string(to_string(e.binary)) + "_" + operand;
      break;
    case ExprKind::kMulAcc:
      name += "mul_acc_" + operand;
      break;
    case ExprKind::kCast:
      name += operand + "_to_" + dtype(e);
      break;
    case ExprKind::kDot:
      name += e.type.dtype == DType::kF32 ? "dot_bf16"
                                          : (e.type.dtype == DType::kU32 ? "dot_halves_" : "dot_") + operand +
                                                "_" + dtype(*e.args[1]);
      break;
    default:
      QUERNEL_UNREACHABLE("not an elementary operation");
  }
  for (size_t i = 0; i < e.args.size(); ++i)
    if (e.args[i]->kind == ExprKind::kConst) name += "_" + std::to_string(i) + "x" + hex(e.args[i]->bits);
  return name;
}

// Values that emission left unused.
void delete_dead_instructions(llvm::Function& function) {
  for (llvm::BasicBlock& block : llvm::reverse(function))
    for (llvm::Instruction& i : llvm::make_early_inc_range(llvm::reverse(block)))
      if (llvm::isInstructionTriviallyDead(&i)) i.eraseFromParent();
}

}  // namespace

struct ElementaryFunctions::State {
  llvm::LLVMContext context;
  llvm::Module module{"elementary", context};
  InstructionSet isa;
  loop::Kernel no_kernel;
  std::vector<std::pair<std::string, llvm::Function*>> functions;
  std::set<std::string> names;
  TextLanguage language = TextLanguage::kC;
};

ElementaryFunctions::ElementaryFunctions(const Target& target, TextLanguage language)
    : state_(std::make_unique<State>()) {
  bool fuses = target.has_fma && language == TextLanguage::kC;
  state_->isa.f32.fma = target.has_f32 && fuses;
  state_->isa.f64.fma = target.has_f64 && fuses;
  state_->isa.f32.sqrt = state_->isa.f64.sqrt = true;  // a function of the language or its prelude
  // Shaders must not count on denormals.
  state_->isa.f16_normals = target.has_f16 && language == TextLanguage::kGlsl;
  state_->language = language;
}
ElementaryFunctions::ElementaryFunctions(ElementaryFunctions&&) noexcept = default;
ElementaryFunctions::~ElementaryFunctions() = default;

std::string ElementaryFunctions::name_of(const loop::Expr& operation) {
  std::string name = name_for(*operation);
  if (!state_->names.insert(name).second) return name;
  std::vector<loop::Var> parameters;
  for (const loop::Expr& arg : operation->args)
    if (arg->kind == ExprKind::kVar) parameters.push_back(arg->var);
  KernelEmitter emitter(state_->module, state_->isa, state_->no_kernel, name);
  llvm::Function* function = emitter.emit_function(operation, parameters);
  delete_dead_instructions(*function);
  state_->functions.emplace_back(name, function);
  return name;
}

Expected<std::string> ElementaryFunctions::print() const {
  TextLanguage language = state_->language;
  std::string text;
  std::set<const llvm::Value*> printed;
  std::set<std::string> structs;
  Diagnostics errors;
  auto take = [&](Expected<std::string> part) {
    if (part)
      text += *part;
    else
      errors = part.errors();
  };
  // What a function calls and reads comes first.
  std::function<void(const llvm::Function&, const std::string&)> visit = [&](const llvm::Function& f,
                                                                             const std::string& name) {
    if (!printed.insert(&f).second) return;
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      llvm::Type* type = i.getType();
      if (type->isStructTy() && structs.insert(type_of(*type, language)).second)
        text += print_struct(*type, language);
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i))
        if (const llvm::Function* callee = call->getCalledFunction(); callee && !callee->isIntrinsic())
          visit(*callee, kPrefix + callee->getName().str());
      for (const llvm::Value* operand : i.operand_values())
        if (auto* table = llvm::dyn_cast<llvm::GlobalVariable>(operand);
            table && printed.insert(table).second)
          take(print_table(*table, kPrefix, language));
    }
    take(print_function(f, name, kPrefix, language));
  };
  for (const auto& [name, function] : state_->functions) visit(*function, name);
  if (!errors.empty()) return errors;
  return text;
}

}  // namespace quernel::codegen
