#include "find_run_binary.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "feature_names.h"

namespace quernel::tools {
namespace {

namespace fs = std::filesystem;

qnl_arch arch_of_machine(uint16_t machine, uint8_t elf_class) {
  switch (machine) {
    case EM_X86_64:
      return QNL_ARCH_X86_64;
    case EM_AARCH64:
      return QNL_ARCH_AARCH64;
    case EM_ARM:
      return QNL_ARCH_ARM;
    case EM_RISCV:
      return elf_class == ELFCLASS64 ? QNL_ARCH_RISCV64 : QNL_ARCH_RISCV32;
    default:
      return QNL_ARCH_NONE;
  }
}

// Whether a program header asks for an interpreter, the dynamic linker.
template <class Header, class ProgramHeader>
bool has_interpreter(std::ifstream& file) {
  Header header = {};
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return false;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ProgramHeader program = {};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof program));
    if (!file.read(reinterpret_cast<char*>(&program), sizeof program)) return false;
    if (program.p_type == PT_INTERP) return true;
  }
  return false;
}

std::vector<std::string> candidates(qnl_arch arch) {
  std::error_code error;
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::string> files = {folder / "quernel-run",
                                    folder.parent_path() / "lib/quernel" / arch_name(arch) / "quernel-run"};
  std::vector<std::string> others;
  for (fs::directory_iterator build(folder.parent_path().parent_path(), error), end; !error && build != end;
       build.increment(error))
    if (fs::exists(build->path() / "CMakeCache.txt", error))
      others.push_back(build->path() / "bin/quernel-run");
  std::sort(others.begin(), others.end());
  files.insert(files.end(), others.begin(), others.end());
  return files;
}

// How one is built.
std::string build_hint(qnl_arch arch, RunnerKind wanted) {
  bool host = arch == QNL_ARCH_X86_64, vulkan = wanted == RunnerKind::kVulkan;
  std::string preset = host                       ? vulkan ? "release" : "minsize"
                       : arch == QNL_ARCH_AARCH64 ? "aarch64"
                       : arch == QNL_ARCH_ARM     ? "armv7"
                                                  : "riscv64";
  // Those of other architectures are static unless told otherwise, that of this machine is not.
  std::string flags;
  if (host != vulkan) flags = vulkan ? " -DCMAKE_EXE_LINKER_FLAGS=" : " -DCMAKE_EXE_LINKER_FLAGS=-static";
  return fmt::format(
      "name one with --run-binary, or build it: cmake --preset {}{} && cmake --build --preset {}", preset,
      flags, preset);
}

// Whether the program can open the Vulkan loader, whose name is then in it.
bool can_open_vulkan(const std::string& path, const ProgramKind& kind) {
  if (kind.is_static) return false;
  std::ifstream file(path, std::ios::binary);
  std::string program((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return program.find("libvulkan.so.1") != std::string::npos;
}

}  // namespace

std::optional<ProgramKind> read_program_kind(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  Elf32_Ehdr header = {};  // what is read of it lies in the same place for both classes
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      (header.e_type != ET_EXEC && header.e_type != ET_DYN))
    return std::nullopt;
  uint8_t elf_class = header.e_ident[EI_CLASS];
  ProgramKind kind;
  kind.arch = arch_of_machine(header.e_machine, elf_class);
  kind.is_static = elf_class == ELFCLASS64 ? !has_interpreter<Elf64_Ehdr, Elf64_Phdr>(file)
                                           : !has_interpreter<Elf32_Ehdr, Elf32_Phdr>(file);
  return kind.arch == QNL_ARCH_NONE ? std::nullopt : std::optional(kind);
}

Expected<std::string> find_run_binary(const std::string& file, qnl_arch arch, RunnerKind wanted) {
  auto suits = [&](const std::string& path, const ProgramKind& kind) {
    return wanted != RunnerKind::kVulkan || can_open_vulkan(path, kind);
  };
  if (!file.empty()) {
    std::optional<ProgramKind> kind = read_program_kind(file);
    if (!kind) return invalid_input("--run-binary: expected a quernel-run, found no program", {.file = file});
    if (arch != QNL_ARCH_NONE && kind->arch != arch)
      return invalid_input(fmt::format("--run-binary: expected a program for {}, found one for {}",
                                       arch_name(arch), arch_name(kind->arch)),
                           {.file = file});
    if (!suits(file, *kind))
      return invalid_input(
          "--run-binary: expected a program that can load the Vulkan loader, found one that "
          "is linked statically or built without Vulkan",
          {.file = file}, build_hint(kind->arch, wanted));
    return file;
  }
  std::string second;
  for (const std::string& candidate : candidates(arch)) {
    std::optional<ProgramKind> kind = read_program_kind(candidate);
    if (!kind || kind->arch != arch || !suits(candidate, *kind)) continue;
    if (kind->is_static || wanted != RunnerKind::kStatic) return candidate;
    if (second.empty()) second = candidate;
  }
  if (!second.empty()) return second;
  return invalid_input(fmt::format("found no quernel-run for {}{}", arch_name(arch),
                                   wanted == RunnerKind::kVulkan ? " that can load the Vulkan loader" : ""),
                       {}, build_hint(arch, wanted));
}

}  // namespace quernel::tools
