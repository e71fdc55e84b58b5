// Compiles loop-IR kernels to one linked image for one target, or to objects for another linker: LLVM IR,
// optimisation, object code, in-process lld.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/llvm/prebuilt_kernel.h"
#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct MachineCodeOptions {
  int threads = 0;       // code generation threads; 0: one per core
  bool optimize = true;  // false: compiles as fast as possible
  std::string dump_dir;  // if set: receives <kernel>.ll (optimised) and <kernel>.s
  // If set: objects for a static program instead of an image. Kernel i's symbol is this prefix and i.
  std::string symbol_prefix;
};

// The code of a variant: an ELF shared object as schemas/kernel_abi.h describes it. For a static program:
// relocatable objects and each kernel's symbol. Prebuilt kernels come first, then the generated ones.
// `stack_bytes[i]`: an upper bound of kernel i's stack use, 0 if unknown. `scratch_bytes[i]`: the scratch it
// needs (kernel_abi.h).
struct Image {
  std::vector<uint8_t> code;
  std::vector<std::string> objects, symbols;
  std::vector<std::string> kernel_names;
  std::vector<uint64_t> stack_bytes, scratch_bytes;
};

// Requires kernels after loop/passes (no kVector or kUnrolled loops left). Equal input gives equal bytes. A
// failure inside LLVM becomes an internal diagnostic, not an abort. Prebuilt kernels that cannot be linked
// are invalid input.
Expected<Image> compile_kernels(const std::vector<loop::Kernel>& kernels, const Target& target,
                                const MachineCodeOptions& options,
                                const std::vector<PrebuiltKernel>& prebuilt = {});

}  // namespace quernel::codegen
