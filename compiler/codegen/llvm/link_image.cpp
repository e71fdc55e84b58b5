#include "codegen/llvm/link_image.h"

#include <elf.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>

#include "support/temporary_directory.h"

LLD_HAS_DRIVER(elf)

namespace quernel::codegen {
namespace {

Diagnostic link_error(const std::string& message) {
  return internal_error("link: " + message, {}, "link-image");
}

// A file without a name, which lld reads through /proc.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& bytes) : fd_(memfd_create("object", MFD_CLOEXEC)) {
    size_t done = 0;
    while (fd_ >= 0 && done < bytes.size()) {
      ssize_t n = write(fd_, bytes.data() + done, bytes.size() - done);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    complete_ = fd_ >= 0 && done == bytes.size();
  }
  MemoryFile(MemoryFile&& other) noexcept : fd_(other.fd_), complete_(other.complete_) { other.fd_ = -1; }
  MemoryFile(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }
  bool complete() const { return complete_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
  bool complete_ = false;
};

// The contract that loaders rely on; works on both ELF classes.
template <class Header, class Segment>
std::string contract_violation(const std::vector<uint8_t>& elf) {
  Header header;
  if (elf.size() < sizeof(header)) return "file too short";
  std::memcpy(&header, elf.data(), sizeof(header));
  int loads = 0;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Segment segment;
    std::memcpy(&segment, elf.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type == PT_TLS || segment.p_type == PT_INTERP) return "unexpected segment";
    if (segment.p_type != PT_LOAD) continue;
    ++loads;
    if (segment.p_flags != (PF_R | PF_X)) return "a segment that is not read and execute";
    if (segment.p_offset != 0 || segment.p_filesz != segment.p_memsz) return "a segment that is not the file";
  }
  if (loads != 1) return "expected one segment to load, found " + std::to_string(loads);
  return header.e_entry == 0 ? "no entry" : "";
}

}  // namespace

Expected<std::vector<uint8_t>> link_image(const std::vector<std::string>& objects, const std::string& entry) {
  std::vector<MemoryFile> files;
  for (const std::string& object : objects) {
    files.emplace_back(object);
    if (!files.back().complete()) return link_error("cannot create a memory file");
  }
  TemporaryDirectory directory;
  if (directory.path().empty()) return link_error("cannot create a temporary directory");
  std::string output = directory.path() + "/image";

  // One R+E segment and no relocations, so that an image can be mapped, or run from flash, as it is.
  std::vector<std::string> arguments = {"ld.lld",
                                        "-shared",
                                        "-nostdlib",
                                        "--no-undefined",
                                        "-z",
                                        "text",
                                        "-z",
                                        "now",
                                        "-z",
                                        "norelro",
                                        "-z",
                                        "noseparate-code",
                                        "-z",
                                        "nognustack",
                                        "-z",
                                        "rodynamic",
                                        "-z",
                                        "max-page-size=4096",
                                        "--hash-style=gnu",
                                        "--build-id=none",
                                        "-Bsymbolic",
                                        "--gc-sections",
                                        "--no-rosegment",
                                        "--strip-all",
                                        "--threads=1",
                                        "-e",
                                        entry,
                                        "-o",
                                        output};
  for (const MemoryFile& file : files) arguments.push_back(file.path());
  std::vector<const char*> argv;
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());

  std::string out_text, error_text;
  llvm::raw_string_ostream out(out_text), errors(error_text);
  static std::mutex one_at_a_time;  // lld keeps global state
  static bool usable = true;
  {
    std::lock_guard lock(one_at_a_time);
    if (!usable) return link_error("lld crashed before in this process");
    lld::Result result = lld::lldMain(argv, out, errors, {{lld::Gnu, &lld::elf::link}});
    usable = result.canRunAgain;
    if (result.retCode != 0) return link_error(errors.str());
  }

  std::ifstream stream(output, std::ios::binary);
  std::vector<uint8_t> image((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  if (image.size() <= EI_CLASS) return link_error("lld wrote no image");
  std::string violation = image[EI_CLASS] == ELFCLASS64 ? contract_violation<Elf64_Ehdr, Elf64_Phdr>(image)
                                                        : contract_violation<Elf32_Ehdr, Elf32_Phdr>(image);
  if (!violation.empty()) return link_error("the image breaks the kernel ABI: " + violation);
  return image;
}

}  // namespace quernel::codegen
