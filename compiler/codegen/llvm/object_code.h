// A few loop-IR kernels to one ELF object, in memory: LLVM IR, our pass pipeline, machine code. No LLVM type
// shows here. A Compiler is used by one thread at a time; a failure inside LLVM is caught and becomes an
// internal diagnostic.
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
  std::vector<uint64_t> stack_bytes;    // per kernel, an upper bound of what a call uses
  std::vector<uint64_t> scratch_bytes;  // per kernel, what it wants the caller to lend it
};

// What the objects become part of: an image (kernel_abi.h), or a program that somebody else links.
enum class CodeUse { kImage, kStatic };

class Compiler {
 public:
  // Without `optimize`, code comes out soonest.
  static Expected<Compiler> create(const Target& target, bool optimize, CodeUse use);
  Compiler(Compiler&&) noexcept;
  Compiler& operator=(Compiler&&) noexcept;
  ~Compiler();

  // Functions of type qnl_kernel_fn, named `symbols`. With a dump directory: a .ll and a .s file of each,
  // named after the kernel; what is compiled does not depend on that.
  Expected<ObjectCode> compile(std::span<const loop::Kernel> kernels, const std::vector<std::string>& symbols,
                               const std::string& dump_dir);
  // The LLVM IR of a kernel as it is emitted, before any pass (emitted_text.h); for golden tests.
  Expected<std::string> emit_text(const loop::Kernel& kernel);
  // The image's table and its query function kImageQuerySymbol.
  Expected<ObjectCode> compile_table(const std::vector<std::string>& kernel_symbols);
  // The run functions of a program, in the entry points' order (stack_bytes: what each takes beside the
  // kernels), with its constants; and the memory that it may be lent.
  Expected<ObjectCode> compile_program(const StaticProgram& program);
  Expected<ObjectCode> compile_static_memory(const StaticProgram& program);

 private:
  struct State;
  explicit Compiler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

inline constexpr const char* kImageQuerySymbol = "qnl_query";
inline constexpr const char* kKernelSymbolPrefix = "qnl_kernel_";  // of generated kernels

// Catches crashes inside LLVM while it lives; any number may. Process-wide signal handlers are installed by
// the first.
class CrashGuard {
 public:
  CrashGuard();
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
};

}  // namespace quernel::codegen
