// The features of schemas/features.def as targets have them: which may be added to a preset, what is added
// with them, and which facts.
#include <algorithm>
#include <iterator>

#include "targets/target_files.h"

namespace quernel {
namespace {

using AddFacts = void (*)(Target&);

// What a feature with an option adds to the facts of a target that has those that it needs.
template <qnl_arch arch, uint64_t feature>
constexpr AddFacts kFacts = nullptr;
template <>
constexpr AddFacts kFacts<QNL_ARCH_X86_64, QNL_X86_64_AVX512_BF16> = [](Target& t) { t.has_dot_bf16 = true; };
template <>
constexpr AddFacts kFacts<QNL_ARCH_AARCH64, QNL_AARCH64_DOTPROD> =
    [](Target& t) { t.has_dot_s8_s8 = t.has_dot_u8_u8 = t.has_dot_words = true; };
template <>
constexpr AddFacts kFacts<QNL_ARCH_AARCH64, QNL_AARCH64_I8MM> =
    [](Target& t) { t.has_dot_u8_s8 = t.has_dot_2x2 = true; };
void use_sve(Target& t, int bytes) {
  t.vector_bytes = bytes;
  t.has_masks = t.has_gather = true;
  t.has_fma_lanes = false;  // LLVM knows no such instruction for vectors of more than 128 bits
}
template <>
constexpr AddFacts kFacts<QNL_ARCH_AARCH64, QNL_AARCH64_SVE256> = [](Target& t) { use_sve(t, 32); };
template <>
constexpr AddFacts kFacts<QNL_ARCH_AARCH64, QNL_AARCH64_SVE512> = [](Target& t) { use_sve(t, 64); };
template <>
constexpr AddFacts kFacts<QNL_ARCH_RISCV64, QNL_RISCV_VLEN256> =
    [](Target& t) { t.vector_bytes = std::max(t.vector_bytes, 32); };
template <>
constexpr AddFacts kFacts<QNL_ARCH_RISCV64, QNL_RISCV_VLEN512> =
    [](Target& t) { t.vector_bytes = std::max(t.vector_bytes, 64); };
template <>
constexpr AddFacts kFacts<QNL_ARCH_SPIRV, QNL_SPIRV_SUBGROUPS> = [](Target& t) { t.has_subgroups = true; };
template <>
constexpr AddFacts kFacts<QNL_ARCH_SPIRV, QNL_SPIRV_DOTPROD> =
    [](Target& t) { t.has_dot_s8_s8 = t.has_dot_u8_u8 = t.has_dot_u8_s8 = true; };
template <>
constexpr AddFacts kFacts<QNL_ARCH_SPIRV, QNL_SPIRV_FLOAT16> = [](Target& t) { t.has_f16 = true; };
template <>
constexpr AddFacts kFacts<QNL_ARCH_SPIRV, QNL_SPIRV_COOPMAT> = [](Target& t) {
  t.has_f16_matrices = true;
  // What Vulkan asks of devices is half of what those with matrix units have.
  t.workgroup_memory = std::max<int64_t>(t.workgroup_memory, 32 << 10);
};
template <>
constexpr AddFacts kFacts<QNL_ARCH_SPIRV, QNL_SPIRV_COOPMAT_INT8> =
    [](Target& t) { t.has_int8_matrices = true; };
template <>
constexpr AddFacts kFacts<QNL_ARCH_SPIRV, QNL_SPIRV_COOPMAT_BF16> =
    [](Target& t) { t.has_bf16_matrices = true; };

constexpr TargetFeature kFeatures[] = {
#define QNL_FEATURE(arch, constant, bit, name, option, llvm, needs, sentence) \
  {QNL_ARCH_##arch, constant, option, llvm, needs, kFacts<QNL_ARCH_##arch, constant>},
#include "schemas/features.def"
};

constexpr int kArchNumbers[] = {
#define QNL_ARCHITECTURE(NAME, number, name) number,
#include "schemas/features.def"
};

// Names of architectures are looked up by number.
consteval bool architectures_follow_one_another() {
  for (int i = 0; i < static_cast<int>(std::size(kArchNumbers)); ++i)
    if (kArchNumbers[i] != i) return false;
  return true;
}
static_assert(architectures_follow_one_another());

consteval bool no_bit_and_no_option_is_given_twice() {
  for (const TargetFeature& a : kFeatures)
    for (const TargetFeature* b = kFeatures; b != &a; ++b)
      if (a.arch == b->arch && (a.bit == b->bit || (!a.option.empty() && a.option == b->option)))
        return false;
  return true;
}
static_assert(no_bit_and_no_option_is_given_twice());

consteval bool needs_are_lines_above() {
  for (const TargetFeature& a : kFeatures) {
    uint64_t above = 0;
    for (const TargetFeature* b = kFeatures; b != &a; ++b)
      if (a.arch == b->arch) above |= b->bit;
    if ((a.needs & ~above) != 0) return false;
  }
  return true;
}
static_assert(needs_are_lines_above());

consteval bool what_has_an_option_has_facts() {
  for (const TargetFeature& f : kFeatures)
    if (f.option.empty() != (f.add_facts == nullptr)) return false;
  return true;
}
static_assert(what_has_an_option_has_facts());

// What a target lacks of a feature and of all that it needs.
uint64_t missing(const Target& target, const TargetFeature& feature) {
  return with_needs(target.arch, feature.bit) & ~with_needs(target.arch, target.required_features);
}

}  // namespace

uint64_t with_needs(qnl_arch arch, uint64_t features) {
  for (size_t i = std::size(kFeatures); i-- > 0;)  // from the last: needs are lines above
    if (kFeatures[i].arch == arch && (features & kFeatures[i].bit) != 0) features |= kFeatures[i].needs;
  return features;
}

std::string_view llvm_flag(qnl_arch arch, uint64_t feature) {
  for (const TargetFeature& f : kFeatures)
    if (f.arch == arch && f.bit == feature) return f.llvm;
  return {};
}

// SVE's registers have one length.
static bool is_another_length(const Target& target, const TargetFeature& feature) {
  constexpr uint64_t kLengths = QNL_AARCH64_SVE256 | QNL_AARCH64_SVE512;
  return target.arch == QNL_ARCH_AARCH64 && (feature.bit & kLengths) != 0 &&
         (target.required_features & kLengths & ~feature.bit) != 0;
}

std::vector<const TargetFeature*> features_of(const Target& target) {
  std::vector<const TargetFeature*> list;
  uint64_t optional = 0;
  for (const TargetFeature& feature : kFeatures)
    if (feature.arch == target.arch && !feature.option.empty()) optional |= feature.bit;
  for (const TargetFeature& feature : kFeatures)
    if (feature.arch == target.arch && !target.bare_metal && (feature.bit & optional) != 0 &&
        (missing(target, feature) & ~optional) == 0 && !is_another_length(target, feature))
      list.push_back(&feature);
  return list;
}

void add_feature(Target& target, const TargetFeature& feature) {
  uint64_t added = missing(target, feature);
  if (added == 0) return;
  target.name += "+" + std::string(feature.option);
  target.required_features |= added;
  for (const TargetFeature& f : kFeatures) {
    if (f.arch != target.arch || (f.bit & added) == 0) continue;
    if (!f.llvm.empty()) target.features += (target.features.empty() ? "" : ",") + std::string(f.llvm);
    f.add_facts(target);
  }
}

}  // namespace quernel
