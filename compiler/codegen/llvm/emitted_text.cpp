#include "codegen/llvm/emitted_text.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/AssemblyAnnotationWriter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/FormattedStream.h>

#include <map>

namespace quernel::codegen {
namespace {

// The memory that a pointer without a name points into.
std::string base_name(const llvm::Value& pointer) {
  const llvm::Value* base = &pointer;
  while (auto* place = llvm::dyn_cast<llvm::GetElementPtrInst>(base)) base = place->getPointerOperand();
  llvm::StringRef name = base->getName();
  return name.split('.').first.str();
}

// What a value without a name is called: an address after the memory, a load too, a call after the function,
// others after the instruction.
std::string kind_of(const llvm::Instruction& i) {
  if (llvm::isa<llvm::GetElementPtrInst>(i)) return base_name(i) + ".at";
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) return base_name(*load->getPointerOperand()) + ".load";
  if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i); call && call->getCalledFunction()) {
    llvm::StringRef name = call->getCalledFunction()->getName();
    if (!name.consume_front("llvm.")) return name.str();
    bool is_generic = !llvm::Intrinsic::isTargetIntrinsic(call->getIntrinsicID());
    return is_generic ? name.split('.').first.str() : name.str();
  }
  if (llvm::isa<llvm::InsertElementInst>(i)) return "insert";
  if (llvm::isa<llvm::ExtractElementInst>(i)) return "extract";
  if (llvm::isa<llvm::ShuffleVectorInst>(i)) return "shuffle";
  return i.getOpcodeName();
}

void name_values(llvm::Function& function) {
  std::map<std::string, int> counts;
  auto numbered = [&](const std::string& kind) {
    int n = ++counts[kind];
    return n == 1 ? kind : kind + "." + std::to_string(n);
  };
  // All blocks lose their names first: LLVM gives a number to a name that is taken.
  std::vector<std::string> kinds;
  for (llvm::BasicBlock& block : function) {
    kinds.push_back(block.getName().rtrim("0123456789").str());
    block.setName("");
  }
  size_t index = 0;
  for (llvm::BasicBlock& block : function) block.setName(numbered(kinds[index++]));
  for (llvm::Instruction& i : llvm::instructions(function)) {
    if (i.getType()->isVoidTy() || (i.hasName() && !i.getName().starts_with("."))) continue;
    i.setName("");
    i.setName(numbered(kind_of(i)));
  }
}

// The kinds of metadata that an instruction has, each with the names that its node's operands have.
std::string names_in_metadata(const llvm::Instruction& i) {
  llvm::SmallVector<std::pair<unsigned, llvm::MDNode*>, 4> all;
  i.getAllMetadata(all);
  llvm::SmallVector<llvm::StringRef, 32> kinds;
  i.getContext().getMDKindNames(kinds);
  std::string text;
  for (const auto& [kind, node] : all) {
    text += (text.empty() ? "" : ", ") + kinds[kind].str();
    for (const llvm::MDOperand& operand : node->operands()) {
      auto* inner = llvm::dyn_cast_or_null<llvm::MDNode>(operand.get());
      if (!inner || inner == node) continue;
      for (const llvm::MDOperand& name : inner->operands())
        if (auto* string = llvm::dyn_cast_or_null<llvm::MDString>(name.get())) {
          llvm::StringRef word = string->getString();
          word.consume_front("llvm.loop.");
          text += " " + word.str();
        }
    }
  }
  return text;
}

class Comments : public llvm::AssemblyAnnotationWriter {
 public:
  explicit Comments(llvm::Function& function) {
    for (llvm::Instruction& i : llvm::instructions(function)) {
      std::string text = names_in_metadata(i);
      if (text.empty()) continue;
      comments_[&i] = text;
      llvm::SmallVector<std::pair<unsigned, llvm::MDNode*>, 4> all;
      i.getAllMetadata(all);
      for (const auto& [kind, node] : all) i.setMetadata(kind, nullptr);
    }
  }
  void printInfoComment(const llvm::Value& value, llvm::formatted_raw_ostream& out) override {
    auto it = comments_.find(&value);
    if (it != comments_.end()) out << "  ; " << it->second;
  }

 private:
  std::map<const llvm::Value*, std::string> comments_;
};

// LLVM prints each block's predecessors behind its name.
std::string without_predecessors(llvm::StringRef text) {
  std::string result;
  for (llvm::StringRef line : llvm::split(text, '\n')) {
    size_t comment = line.find("; preds = ");
    result += (comment == llvm::StringRef::npos ? line : line.take_front(comment).rtrim()).str() + "\n";
  }
  if (!result.empty()) result.pop_back();
  return result;
}

}  // namespace

std::string emitted_text(llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    name_values(function);
    Comments comments(function);
    function.print(out, &comments);
  }
  return without_predecessors(text);
}

}  // namespace quernel::codegen
