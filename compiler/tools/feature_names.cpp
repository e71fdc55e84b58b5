#include "feature_names.h"

namespace quernel::tools {
namespace {

struct Feature {
  qnl_arch arch;
  uint64_t bit;
  const char* name;
};

constexpr Feature kFeatures[] = {
    {QNL_ARCH_X86_64, QNL_X86_64_V1, "v1"},
    {QNL_ARCH_X86_64, QNL_X86_64_V2, "v2"},
    {QNL_ARCH_X86_64, QNL_X86_64_V3, "v3"},
    {QNL_ARCH_X86_64, QNL_X86_64_V4, "v4"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX_VNNI, "avx-vnni"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX512_VNNI, "avx512-vnni"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX512_BF16, "avx512-bf16"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX512_FP16, "avx512-fp16"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX_VNNI_INT8, "avx-vnni-int8"},
    {QNL_ARCH_X86_64, QNL_X86_64_AVX512_VBMI, "avx512-vbmi"},
    {QNL_ARCH_X86_64, QNL_X86_64_AMX_INT8, "amx-int8"},
    {QNL_ARCH_X86_64, QNL_X86_64_AMX_BF16, "amx-bf16"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_NEON, "neon"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_FP16, "fp16"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_DOTPROD, "dotprod"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_I8MM, "i8mm"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_BF16, "bf16"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_SVE, "sve"},
    {QNL_ARCH_AARCH64, QNL_AARCH64_SVE2, "sve2"},
    {QNL_ARCH_ARM, QNL_ARM_THUMB2, "thumb2"},
    {QNL_ARCH_ARM, QNL_ARM_VFP4_SP, "vfp4-sp"},
    {QNL_ARCH_ARM, QNL_ARM_VFP4_DP, "vfp4-dp"},
    {QNL_ARCH_ARM, QNL_ARM_DSP, "dsp"},
    {QNL_ARCH_ARM, QNL_ARM_NEON, "neon"},
    {QNL_ARCH_ARM, QNL_ARM_MVE_INT, "mve"},
    {QNL_ARCH_ARM, QNL_ARM_MVE_FP, "mve-fp"},
    {QNL_ARCH_ARM, QNL_ARM_IDIV, "idiv"},
    {QNL_ARCH_RISCV64, QNL_RISCV_GC, "gc"},
    {QNL_ARCH_RISCV64, QNL_RISCV_V, "v"},
    {QNL_ARCH_RISCV64, QNL_RISCV_ZVFH, "zvfh"},
    {QNL_ARCH_RISCV64, QNL_RISCV_VLEN256, "vlen256"},
    {QNL_ARCH_RISCV64, QNL_RISCV_VLEN512, "vlen512"},
    {QNL_ARCH_RISCV32, QNL_RISCV_GC, "gc"},
    {QNL_ARCH_RISCV32, QNL_RISCV_V, "v"},
    {QNL_ARCH_RISCV32, QNL_RISCV_ZVFH, "zvfh"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_VULKAN_1_1, "vulkan-1.1"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_INT16, "int16"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_INT64, "int64"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_FLOAT64, "float64"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_STORAGE_16, "storage16"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_STORAGE_8, "storage8"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_INT8, "int8"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_FLOAT16, "float16"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_SUBGROUPS, "subgroups"},
    {QNL_ARCH_SPIRV, QNL_SPIRV_DOTPROD, "dotprod"},
};

}  // namespace

std::string_view arch_name(qnl_arch arch) {
  switch (arch) {
    case QNL_ARCH_NONE:
      return "none";
    case QNL_ARCH_X86_64:
      return "x86-64";
    case QNL_ARCH_AARCH64:
      return "aarch64";
    case QNL_ARCH_ARM:
      return "arm";
    case QNL_ARCH_RISCV64:
      return "riscv64";
    case QNL_ARCH_RISCV32:
      return "riscv32";
    case QNL_ARCH_SPIRV:
      return "spirv";
  }
  return "unknown";
}

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

std::vector<std::string> feature_names(qnl_arch arch, uint64_t features) {
  std::vector<std::string> names;
  for (int bit = 0; bit < 64; ++bit) {
    uint64_t mask = uint64_t{1} << bit;
    if ((features & mask) == 0) continue;
    std::string name = "bit " + std::to_string(bit);
    for (const Feature& feature : kFeatures)
      if (feature.arch == arch && feature.bit == mask) name = feature.name;
    names.push_back(std::move(name));
  }
  return names;
}

std::string feature_text(qnl_arch arch, uint64_t features) {
  std::string text;
  for (const std::string& name : feature_names(arch, features)) text += (text.empty() ? "" : " ") + name;
  return text.empty() ? "nothing" : text;
}

}  // namespace quernel::tools
