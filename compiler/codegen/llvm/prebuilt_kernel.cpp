#include "codegen/llvm/prebuilt_kernel.h"

#include <llvm/Object/ELFObjectFile.h>
#include <llvm/TargetParser/Triple.h>

#include <map>
#include <set>

#include "codegen/llvm/object_code.h"

namespace quernel::codegen {
namespace {

using llvm::object::ELFObjectFileBase;
using llvm::object::ELFSectionRef;
using llvm::object::ELFSymbolRef;
using Symbol = llvm::object::BasicSymbolRef;

constexpr const char* kHowToCompile = "compile it with -c -ffreestanding -fPIC";

std::string list(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? "none" : text;
}

// What an object's symbol table says.
struct Symbols {
  std::set<std::string> functions;  // global ones
  std::set<std::string> globals;
  std::set<std::string> undefined;
  std::set<std::string> common;
};

class ObjectCheck {
 public:
  ObjectCheck(const PrebuiltKernel& kernel, const Target& target) : kernel_(kernel), target_(target) {}

  Status run() {
    llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
        llvm::object::ObjectFile::createELFObjectFile({kernel_.object, kernel_.path});
    if (!file) {
      llvm::consumeError(file.takeError());
      return fail("expected an ELF object file, found something else");
    }
    auto* elf = llvm::dyn_cast<ELFObjectFileBase>(file->get());
    if (!elf || elf->getEType() != llvm::ELF::ET_REL)
      return fail("expected a relocatable object, found a linked one",
                  "give what the compiler writes with -c");
    llvm::Triple triple(target_.triple);
    if (elf->getArch() != triple.getArch())
      return fail("expected code for " + target_.name + " (" + std::string(triple.getArchName()) +
                  "), found " + llvm::Triple::getArchTypeName(elf->getArch()).str());
    QUERNEL_CHECK(read_symbols(*elf));
    if (!symbols.functions.count(kernel_.symbol))
      return fail("expected a global function '" + kernel_.symbol + "', found " + list(symbols.functions));
    if (!symbols.undefined.empty())
      return fail("expected a kernel that needs nothing outside of its object, found uses of " +
                      list(symbols.undefined),
                  kHowToCompile);
    return check_sections(*elf);
  }

  Symbols symbols;

 private:
  Diagnostic fail(const std::string& message, const std::string& hint = {}) const {
    return invalid_input("kernel of custom op '" + kernel_.name + "': " + message,
                         Location{kernel_.path, {}, {}, 0}, hint);
  }

  Status read_symbols(const ELFObjectFileBase& elf) {
    for (const ELFSymbolRef& symbol : elf.symbols()) {
      llvm::Expected<llvm::StringRef> name = symbol.getName();
      llvm::Expected<uint32_t> flags = symbol.getFlags();
      if (!name || !flags) {
        llvm::consumeError(name.takeError());
        llvm::consumeError(flags.takeError());
        return fail("expected a readable symbol table, found a damaged one");
      }
      // The linker makes this one.
      if (name->empty() || *name == "_GLOBAL_OFFSET_TABLE_") continue;
      if (*flags & Symbol::SF_Undefined) {
        symbols.undefined.insert(name->str());
      } else if (*flags & Symbol::SF_Common) {
        symbols.common.insert(name->str());
      } else if (*flags & Symbol::SF_Global) {
        symbols.globals.insert(name->str());
        if (symbol.getELFType() == llvm::ELF::STT_FUNC) symbols.functions.insert(name->str());
      }
    }
    return {};
  }

  Status check_sections(const ELFObjectFileBase& elf) const {
    if (!symbols.common.empty())
      return fail("expected a kernel that keeps no state, found variables " + list(symbols.common));
    for (const ELFSectionRef section : elf.sections()) {
      if ((section.getFlags() & llvm::ELF::SHF_WRITE) == 0 || section.getSize() == 0) continue;
      llvm::Expected<llvm::StringRef> name = section.getName();
      std::string text = name ? name->str() : "?";
      if (!name) llvm::consumeError(name.takeError());
      return fail("expected a kernel that keeps no state and needs no relocation, found data in section '" +
                      text + "'",
                  "make its data constant, without pointers in it");
    }
    return {};
  }

  const PrebuiltKernel& kernel_;
  const Target& target_;
};

}  // namespace

Status check_prebuilt_kernels(const std::vector<PrebuiltKernel>& kernels, const Target& target) {
  std::map<std::string, const PrebuiltKernel*> owners;
  for (const PrebuiltKernel& kernel : kernels) {
    ObjectCheck check(kernel, target);
    QUERNEL_CHECK(check.run());
    for (const std::string& name : check.symbols.globals) {
      const PrebuiltKernel* owner = owners.try_emplace(name, &kernel).first->second;
      bool ours = name == kImageQuerySymbol || name.starts_with(kKernelSymbolPrefix);
      if (ours || owner->object != kernel.object)
        return invalid_input("kernel of custom op '" + kernel.name + "': global name '" + name + "' is " +
                                 (ours ? "Quernel's own" : "also in " + owner->path),
                             Location{kernel.path, {}, {}, 0}, "make it static, or give it another name");
    }
  }
  return {};
}

}  // namespace quernel::codegen
