#include "feature_names.h"

#include <bit>
#include <iterator>

namespace quernel::tools {
namespace {

struct FeatureName {
  qnl_arch arch;
  uint64_t feature;
  std::string_view name;
};
constexpr FeatureName kFeatureNames[] = {
#define QNL_FEATURE(arch, constant, bit, name, option, llvm, needs, sentence) \
  {QNL_ARCH_##arch, constant, name},
#include "schemas/features.def"
};

constexpr std::string_view kArchNames[] = {
#define QNL_ARCHITECTURE(NAME, number, name) name,
#include "schemas/features.def"
};

// `feature` is one bit.
std::string feature_name(qnl_arch arch, uint64_t feature) {
  if (arch == QNL_ARCH_RISCV32) arch = QNL_ARCH_RISCV64;  // whose features it has
  for (const FeatureName& known : kFeatureNames)
    if (known.arch == arch && known.feature == feature) return std::string(known.name);
  return "bit-" + std::to_string(std::countr_zero(feature));
}

}  // namespace

std::string_view arch_name(qnl_arch arch) {
  auto number = static_cast<size_t>(arch);
  return number < std::size(kArchNames) ? kArchNames[number] : "unknown architecture";
}

std::vector<std::string> feature_names(qnl_arch arch, uint64_t features) {
  std::vector<std::string> names;
  for (uint64_t rest = features; rest != 0; rest &= rest - 1)
    names.push_back(feature_name(arch, rest & (~rest + 1)));
  return names;
}

std::string feature_text(qnl_arch arch, uint64_t features) {
  std::string text;
  for (const std::string& name : feature_names(arch, features)) text += (text.empty() ? "" : " ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace quernel::tools
