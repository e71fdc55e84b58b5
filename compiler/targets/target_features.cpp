// What a target may have beyond its preset, as data: NAME in --target PRESET+NAME.
#include <algorithm>

#include "schemas/kernel_abi.h"
#include "targets/target_files.h"

namespace quernel {
namespace {

constexpr TargetFeature kFeatures[] = {
    {"bf16", QNL_ARCH_X86_64, "+avx512bf16", QNL_X86_64_V4, QNL_X86_64_AVX512_BF16,
     [](Target& t) { t.has_dot_bf16 = true; }},
    {"dotprod", QNL_ARCH_AARCH64, "+dotprod", QNL_AARCH64_NEON, QNL_AARCH64_DOTPROD,
     [](Target& t) { t.has_dot_s8_s8 = t.has_dot_u8_u8 = true; }},
    {"i8mm", QNL_ARCH_AARCH64, "+dotprod,+i8mm", QNL_AARCH64_NEON, QNL_AARCH64_DOTPROD | QNL_AARCH64_I8MM,
     [](Target& t) { t.has_dot_s8_s8 = t.has_dot_u8_u8 = t.has_dot_u8_s8 = true; }},
    {"vlen256", QNL_ARCH_RISCV64, "+zvl256b", QNL_RISCV_V, QNL_RISCV_VLEN256,
     [](Target& t) { t.vector_bytes = std::max(t.vector_bytes, 32); }},
    {"vlen512", QNL_ARCH_RISCV64, "+zvl512b", QNL_RISCV_V, QNL_RISCV_VLEN256 | QNL_RISCV_VLEN512,
     [](Target& t) { t.vector_bytes = std::max(t.vector_bytes, 64); }},
    {"subgroups", QNL_ARCH_SPIRV, "", QNL_SPIRV_VULKAN_1_1, QNL_SPIRV_SUBGROUPS,
     [](Target& t) { t.has_subgroups = true; }},
    {"dotprod", QNL_ARCH_SPIRV, "", QNL_SPIRV_VULKAN_1_1, QNL_SPIRV_DOTPROD,
     [](Target& t) { t.has_dot_s8_s8 = t.has_dot_u8_u8 = t.has_dot_u8_s8 = true; }},
    {"float16", QNL_ARCH_SPIRV, "", QNL_SPIRV_VULKAN_1_1, QNL_SPIRV_FLOAT16,
     [](Target& t) { t.has_f16 = true; }},
};

}  // namespace

std::vector<const TargetFeature*> features_of(const Target& target) {
  std::vector<const TargetFeature*> list;
  for (const TargetFeature& feature : kFeatures)
    if (feature.arch == target.arch && !target.bare_metal && (feature.needs & ~target.required_features) == 0)
      list.push_back(&feature);
  return list;
}

void add_feature(Target& target, const TargetFeature& feature) {
  if ((feature.adds & ~target.required_features) == 0) return;
  target.name += "+" + std::string(feature.name);
  target.required_features |= feature.adds;
  if (!target.features.empty()) target.features += ",";
  target.features += feature.llvm;
  feature.add_facts(target);
}

}  // namespace quernel
