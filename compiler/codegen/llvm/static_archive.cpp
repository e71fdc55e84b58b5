#include "codegen/llvm/static_archive.h"

#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <array>
#include <set>

#include "codegen/llvm/object_code.h"

namespace quernel::codegen {
namespace {

constexpr uint64_t kMostConstants = uint64_t{1} << 30;

// What a call of an arithmetic helper may take.
constexpr uint64_t kHelperStackBytes = 128;

// What an object defines, uses and holds.
struct Contents {
  std::set<std::string> defined, undefined;
  uint64_t flash_bytes = 0;  // of sections that are loaded
};

Status read(const std::string& object, Contents& contents) {
  auto failed = [](llvm::Error error) {
    return internal_error("an object cannot be read: " + llvm::toString(std::move(error)), {},
                          "static-archive");
  };
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createELFObjectFile({object, "object"});
  if (!file) return failed(file.takeError());
  auto& elf = llvm::cast<llvm::object::ELFObjectFileBase>(**file);
  for (const llvm::object::ELFSymbolRef& symbol : elf.symbols()) {
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!name) return failed(name.takeError());
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    if (!flags) return failed(flags.takeError());
    if (name->empty() || *name == "_GLOBAL_OFFSET_TABLE_") continue;
    if (*flags & llvm::object::BasicSymbolRef::SF_Undefined)
      contents.undefined.insert(name->str());
    else if (*flags & llvm::object::BasicSymbolRef::SF_Global)
      contents.defined.insert(name->str());
  }
  for (const llvm::object::ELFSectionRef section : elf.sections())
    if ((section.getFlags() & llvm::ELF::SHF_ALLOC) && section.getType() != llvm::ELF::SHT_NOBITS)
      contents.flash_bytes += section.getSize();
  return {};
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> all) {
  return std::find(all.begin(), all.end(), text) != all.end();
}

// Integer and floating-point arithmetic as libgcc and compiler-rt name it: __aeabi_fadd, __udivdi3,
// __extendhfsf2. Nothing that moves memory.
bool is_arithmetic_helper(std::string_view name) {
  if (name.starts_with("__aeabi_"))
    return !name.starts_with("__aeabi_mem") && !name.starts_with("__aeabi_unwind") &&
           name != "__aeabi_read_tp";
  if (!name.starts_with("__")) return false;
  name.remove_prefix(2);
  if (!name.empty() && name.back() >= '2' && name.back() <= '4') name.remove_suffix(1);
  size_t modes = 0;
  for (; name.size() > 2 && is_one_of(name.substr(name.size() - 2),
                                      {"qi", "hi", "si", "di", "ti", "hf", "sf", "df", "tf", "bf"});
       ++modes)
    name.remove_suffix(2);
  return modes != 0 &&
         is_one_of(name, {"add",    "sub",   "mul",  "div",  "udiv",     "mod",    "umod",  "neg",
                          "eq",     "ne",    "lt",   "le",   "gt",       "ge",     "unord", "cmp",
                          "ucmp",   "ashl",  "ashr", "lshr", "fix",      "fixuns", "float", "floatun",
                          "extend", "trunc", "clz",  "ctz",  "popcount", "bswap",  "ffs",   "parity"});
}

uint64_t deepest_kernel(const StaticProgram& program) {
  uint64_t most = 0;
  for (const StaticKernel& kernel : program.kernels) most = std::max(most, kernel.stack_bytes);
  return most;
}

}  // namespace

Expected<StaticArchive> static_archive(const StaticProgram& program, const std::vector<std::string>& kernels,
                                       const Target& target, bool optimize) {
  if (program.constants_bytes > kMostConstants)
    return unsupported("expected at most " + std::to_string(kMostConstants) +
                           " bytes of constants in a static library, found " +
                           std::to_string(program.constants_bytes),
                       {}, "write a bundle, which is mapped and not linked");
  CrashGuard crash_guard;
  QUERNEL_TRY(Compiler compiler, Compiler::create(target, optimize, CodeUse::kStatic));
  QUERNEL_TRY(ObjectCode code, compiler.compile_program(program));
  QUERNEL_TRY(ObjectCode memory, compiler.compile_static_memory(program));

  StaticArchive archive;
  Contents contents;
  std::vector<std::pair<std::string, const std::string*>> members;
  for (const std::string& object : kernels) {
    members.emplace_back(program.identifier + "_kernels_" + std::to_string(members.size()) + ".o", &object);
    QUERNEL_CHECK(read(object, contents));
  }
  archive.kernel_bytes = contents.flash_bytes;
  members.emplace_back(program.identifier + "_program.o", &code.bytes);
  QUERNEL_CHECK(read(code.bytes, contents));
  archive.overhead_bytes = contents.flash_bytes - archive.kernel_bytes - program.constants_bytes;
  for (const StaticState& state : program.states) archive.overhead_bytes -= state.initial.size();
  members.emplace_back(program.identifier + "_memory.o", &memory.bytes);

  std::string foreign;
  for (const std::string& name : contents.undefined) {
    if (contents.defined.count(name)) continue;
    if (is_arithmetic_helper(name))
      archive.helpers.push_back(name);
    else
      foreign += (foreign.empty() ? "'" : ", '") + name + "'";
  }
  if (!foreign.empty())
    return internal_error("expected code that calls arithmetic helpers only, found uses of " + foreign, {},
                          "static-archive");
  for (uint64_t bytes : code.stack_bytes) archive.stack_bytes = std::max(archive.stack_bytes, bytes);
  archive.stack_bytes += deepest_kernel(program) + (archive.helpers.empty() ? 0 : kHelperStackBytes);

  std::vector<llvm::NewArchiveMember> list;
  for (const auto& [name, bytes] : members) list.emplace_back(llvm::MemoryBufferRef(*bytes, name));
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> buffer =
      llvm::writeArchiveToBuffer(list, llvm::SymtabWritingMode::NormalSymtab, llvm::object::Archive::K_GNU,
                                 /*Deterministic=*/true, /*Thin=*/false);
  if (!buffer)
    return internal_error("the archive cannot be made: " + llvm::toString(buffer.takeError()), {},
                          "static-archive");
  archive.bytes = (*buffer)->getBuffer().str();
  return archive;
}

}  // namespace quernel::codegen
