#include "core/feature_names.h"

#include "schemas/kernel_abi.h"

namespace quernel::runtime {
namespace {

// Names lie inside the table: pointers would take more room than what they point to.
struct FeatureName {
  uint8_t arch, bit;
  char name[14];
};
constexpr FeatureName kFeatureNames[] = {
#define QNL_FEATURE(arch, constant, bit, name, option, llvm, needs, sentence) {QNL_ARCH_##arch, bit, name},
#include "schemas/features.def"
};

constexpr const char* kArchNames[] = {
#define QNL_ARCHITECTURE(NAME, number, name) name,
#include "schemas/features.def"
};

}  // namespace

const char* arch_name(uint32_t arch) {
  return arch < sizeof kArchNames / sizeof kArchNames[0] ? kArchNames[arch] : "unknown architecture";
}

const char* feature_name(uint32_t arch, uint32_t bit) {
  if (arch == QNL_ARCH_RISCV32) arch = QNL_ARCH_RISCV64;  // whose features it has
  for (const FeatureName& known : kFeatureNames)
    if (known.arch == arch && known.bit == bit) return known.name;
  return nullptr;
}

}  // namespace quernel::runtime
