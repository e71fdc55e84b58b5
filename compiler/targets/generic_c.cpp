// Any machine that has a C compiler: kernels are C99 only, and take a processor without vectors.
#include "targets/forms.h"
#include "targets/target_files.h"

namespace quernel {

std::vector<Target> generic_c_targets() {
  Target c;
  c.name = std::string(kGenericC);
  c.description = "any machine with a C compiler: portable C99 without vectors (compile --emit c)";
  c.arch = qnl_arch{};  // none
  c.vector_bytes = 4;
  c.vector_registers = 16;
  c.integer_registers = 14;
  c.l1_bytes = c.l2_bytes = 16 << 10;
  c.single_issue = c.loads_signed_bytes = true;
  c.bare_metal = true;
  return {c};
}

}  // namespace quernel
