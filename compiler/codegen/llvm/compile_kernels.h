// Loop IR kernels to one linked image for one target, or to objects that somebody else links: LLVM IR,
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

struct CompileOptions {
  int threads = 0;       // code generation threads; 0: one per core
  bool optimize = true;  // false: the code that comes out soonest
  std::string dump_dir;  // when set: <kernel>.ll (optimised) and <kernel>.s land there
  // When set: objects for the static form in place of an image; kernel i's symbol is this and i.
  std::string symbol_prefix;
};

// The code of a variant as schemas/kernel_abi.h describes it, an ELF shared object here; or, for the static
// form, relocatable objects and each kernel's symbol: the prebuilt kernels, then the generated ones.
// `stack_bytes[i]` is an upper bound of kernel i's stack use, 0 where it is not known; `scratch_bytes[i]` it
// wants lent (kernel_abi.h).
struct Image {
  std::vector<uint8_t> code;
  std::vector<std::string> objects, symbols;
  std::vector<std::string> kernel_names;
  std::vector<uint64_t> stack_bytes, scratch_bytes;
};

// `kernels` must have been through loop/passes (no kVector or kUnrolled loops left). Same input, same bytes.
// A failure inside LLVM becomes an internal diagnostic, not an abort. Prebuilt kernels that cannot be linked
// are invalid input.
Expected<Image> compile_kernels(const std::vector<loop::Kernel>& kernels, const Target& target,
                                const CompileOptions& options,
                                const std::vector<PrebuiltKernel>& prebuilt = {});

}  // namespace quernel::codegen
