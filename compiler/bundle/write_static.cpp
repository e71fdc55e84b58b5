#include "bundle/write_static.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "support/file.h"

namespace quernel::bundle {
namespace {

struct File {
  std::string path, text;
};

Diagnostic cannot_write(const File& file, int error) {
  return invalid_input(std::string("cannot be written: ") + std::strerror(error), {file.path, {}, {}, 0});
}

// All files, or none: they get their names when all are stored.
Expected<std::vector<std::string>> write_all(const std::vector<File>& files) {
  std::vector<std::unique_ptr<OutputFile>> outputs;
  for (const File& file : files) {
    // The one reason for which a rename beside the file itself fails.
    struct stat existing;
    if (stat(file.path.c_str(), &existing) == 0 && S_ISDIR(existing.st_mode))
      return cannot_write(file, EISDIR);
    OutputFile& output = *outputs.emplace_back(std::make_unique<OutputFile>(file.path));
    if (!output.open() || !output.write(file.text.data(), file.text.size(), 0) ||
        !output.store(file.text.size()))
      return cannot_write(file, errno);
  }
  std::vector<std::string> paths;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!outputs[i]->publish()) return cannot_write(files[i], errno);
    paths.push_back(files[i].path);
  }
  return paths;
}

int pointer_bytes(qnl_arch arch) { return arch == QNL_ARCH_ARM || arch == QNL_ARCH_RISCV32 ? 4 : 8; }

std::string cmake_package(const std::string& name, const Target& target) {
  std::string text =
      "# " + name + " for " + target.name + ": the imported target " + name + "::" + name + ".\n";
  text += "if(NOT CMAKE_SIZEOF_VOID_P EQUAL " + std::to_string(pointer_bytes(target.arch)) + ")\n";
  text += "  set(" + name + "_FOUND FALSE)\n";
  text += "  set(" + name + "_NOT_FOUND_MESSAGE \"" + name + " was compiled for " + target.name +
          ", whose pointers have " + std::to_string(pointer_bytes(target.arch)) +
          " bytes, found ${CMAKE_SIZEOF_VOID_P}\")\n";
  text += "  return()\nendif()\n";
  text += "if(NOT TARGET " + name + "::" + name + ")\n";
  text += "  add_library(" + name + "::" + name + " STATIC IMPORTED)\n";
  text += "  set_target_properties(" + name + "::" + name + " PROPERTIES\n";
  text += "    IMPORTED_LOCATION \"${CMAKE_CURRENT_LIST_DIR}/" + name + ".a\"\n";
  text += "    INTERFACE_INCLUDE_DIRECTORIES \"${CMAKE_CURRENT_LIST_DIR}\")\n";
  return text + "endif()\n";
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::string static_name(const std::string& stem) { return stem.substr(stem.rfind('/') + 1); }

Status check_static_name(const std::string& name) {
  constexpr std::string_view kLegal = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.";
  if (!name.empty() && name[0] != '.' && name.find_first_not_of(kLegal) == std::string::npos) return {};
  return invalid_input(
      "expected a name of letters, digits and _ - + . for a static library, found '" + name + "'", {},
      "give another one with -o DIR/NAME");
}

Expected<std::vector<std::string>> write_static(const codegen::StaticProgram& program,
                                                const codegen::StaticArchive& archive, const Target& target,
                                                const std::string& stem) {
  std::string name = static_name(stem), folder = stem.substr(0, stem.size() - name.size());
  CodeFacts facts{archive.kernel_bytes + archive.overhead_bytes, archive.overhead_bytes, archive.stack_bytes};
  std::vector<File> files = {{stem + ".a", archive.bytes},
                             {stem + ".h", model_header(program, name + ".a", facts)},
                             {folder + lower_case(name) + "-config.cmake", cmake_package(name, target)}};
  return write_all(files);
}

Expected<std::vector<std::string>> write_c(const codegen::StaticProgram& program,
                                           const codegen::CProgram& text,
                                           const std::optional<CodeFacts>& facts, const std::string& stem) {
  std::string form = static_name(stem) + ".c";
  if (!text.weights.empty()) form += " and " + static_name(stem) + "_weights.c";
  form += ", static memory in " + static_name(stem) + "_memory.c";
  std::vector<File> files = {{stem + ".c", text.program}, {stem + ".h", model_header(program, form, facts)}};
  if (!text.weights.empty()) files.push_back({stem + "_weights.c", text.weights});
  files.push_back({stem + "_memory.c", text.memory});
  return write_all(files);
}

}  // namespace quernel::bundle
