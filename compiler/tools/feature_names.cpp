#include "feature_names.h"

#include "core/failure.h"

namespace quernel::tools {
std::string_view arch_name(qnl_arch arch) { return runtime::arch_name(arch); }

qnl_arch arch_of(Arch arch) {
  switch (arch) {
    case Arch::kX86_64:
      return QNL_ARCH_X86_64;
    case Arch::kAArch64:
      return QNL_ARCH_AARCH64;
    case Arch::kArm:
      return QNL_ARCH_ARM;
    case Arch::kRiscV64:
      return QNL_ARCH_RISCV64;
    case Arch::kRiscV32:
      return QNL_ARCH_RISCV32;
    case Arch::kSpirv:
      return QNL_ARCH_SPIRV;
  }
  return QNL_ARCH_NONE;
}

std::string feature_text(qnl_arch arch, uint64_t features) {
  char text[512];
  runtime::TextBuilder(text, sizeof text).append_features(arch, features);
  return text;
}

std::vector<std::string> feature_names(qnl_arch arch, uint64_t features) {
  std::vector<std::string> names;
  for (uint64_t rest = features; rest != 0; rest &= rest - 1)
    names.push_back(feature_text(arch, rest & (~rest + 1)));
  return names;
}

}  // namespace quernel::tools
