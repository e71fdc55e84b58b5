// One loop-IR kernel to one ELF object, in memory: LLVM IR, our pass pipeline, machine code. No LLVM type
// shows here. A Compiler is used by one thread at a time; a failure inside LLVM is caught and becomes an
// internal diagnostic.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct ObjectCode {
  std::string bytes;         // an ELF relocatable file
  uint64_t stack_bytes = 0;  // upper bound of what a call uses
};

class Compiler {
 public:
  static Expected<Compiler> create(const Target& target);
  Compiler(Compiler&&) noexcept;
  Compiler& operator=(Compiler&&) noexcept;
  ~Compiler();

  // A function named `symbol` of type qnl_kernel_fn. With a dump directory: <kernel>.ll and <kernel>.s.
  Expected<ObjectCode> compile(const loop::Kernel& kernel, const std::string& symbol,
                               const std::string& dump_dir);
  // The image's table and its query function kImageQuerySymbol.
  Expected<ObjectCode> compile_table(const std::vector<std::string>& kernel_symbols);

 private:
  struct State;
  explicit Compiler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

inline constexpr const char* kImageQuerySymbol = "qnl_query";

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
