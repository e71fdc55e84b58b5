// Compiles a few loop-IR kernels to one ELF object in memory: LLVM IR, our pass pipeline, machine code.
// Exposes no LLVM type. One thread at a time may use a Compiler. A failure inside LLVM is caught and becomes
// an internal diagnostic.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/static_program.h"
#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct ObjectCode {
  std::string bytes;                    // an ELF relocatable file
  std::vector<uint64_t> stack_bytes;    // per kernel: an upper bound of a call's stack use
  std::vector<uint64_t> scratch_bytes;  // per kernel: the scratch that the caller must lend
};

// The destination of objects: an image (kernel_abi.h), or a program with another linker.
enum class CodeUse { kImage, kStatic };

class Compiler {
 public:
  // Without `optimize`, it compiles as fast as possible.
  static Expected<Compiler> create(const Target& target, bool optimize, CodeUse use);
  Compiler(Compiler&&) noexcept;
  Compiler& operator=(Compiler&&) noexcept;
  ~Compiler();

  // Compiles functions of type qnl_kernel_fn, named `symbols`. With a dump directory, also writes a .ll and a
  // .s file per kernel, named after it; this does not change the result.
  Expected<ObjectCode> compile(std::span<const loop::Kernel> kernels, const std::vector<std::string>& symbols,
                               const std::string& dump_dir);
  // Returns a kernel's LLVM IR as it is emitted, before any pass (emitted_text.h); for golden tests.
  Expected<std::string> emit_text(const loop::Kernel& kernel);
  // Compiles the image's table and its query function kImageQuerySymbol.
  Expected<ObjectCode> compile_table(const std::vector<std::string>& kernel_symbols);
  // compile_program compiles a program's run functions, in the entry points' order, with its constants
  // (stack_bytes: the stack of each in addition to the kernels). compile_static_memory compiles the memory
  // that the program may use.
  Expected<ObjectCode> compile_program(const StaticProgram& program);
  Expected<ObjectCode> compile_static_memory(const StaticProgram& program);

 private:
  struct State;
  explicit Compiler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

inline constexpr const char* kImageQuerySymbol = "qnl_query";
inline constexpr const char* kKernelSymbolPrefix = "qnl_kernel_";  // of generated kernels

// Catches crashes inside LLVM during its lifetime; any number may exist. The first one installs process-wide
// signal handlers.
class CrashGuard {
 public:
  CrashGuard();
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
};

}  // namespace quernel::codegen
