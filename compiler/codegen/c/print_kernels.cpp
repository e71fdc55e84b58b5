#include "codegen/c/print_kernels.h"

#include "codegen/c/kernel_printer.h"
#include "codegen/c/prelude.h"
#include "codegen/llvm/check_kernel.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

Expected<CKernels> print_kernels(const std::vector<loop::Kernel>& kernels, const Target& target,
                                 const std::vector<CFunction>& functions) {
  QUERNEL_ASSERT(functions.size() == kernels.size());
  Diagnostics errors;
  for (const loop::Kernel& kernel : kernels)
    if (Status status = check_kernel(kernel); !status)
      for (const Diagnostic& d : status.errors()) errors.push_back(d);
  if (!errors.empty()) return errors;

  ElementaryFunctions operations(target);
  CKernels result;
  std::string users;
  for (size_t k = 0; k < kernels.size(); ++k) {
    KernelPrinter printer(kernels[k], operations, target);
    std::string text = printer.print(functions[k]);
    users += text;
    result.kernels.push_back({std::move(text), printer.scratch_bytes(), printer.array_bytes()});
  }
  QUERNEL_TRY(std::string elementary, operations.print());
  result.prelude = std::string(c_requirements()) + c_prelude_for(elementary + users) + elementary;
  return result;
}

}  // namespace quernel::codegen
