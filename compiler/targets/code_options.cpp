// Code options: parts of `--target PRESET+OPTION` that say how code is made, not what the device has beyond the
// preset: GCC's -mfloat-abi of Cortex-M, f16 arithmetic of GPUs, and whether kernels ask for lines of memory ahead.
#include <algorithm>

#include "targets/target_files.h"

namespace quernel {
namespace {

// Whether calls pass floats in registers of the FPU (AAPCS's VFP variant). The triple's last part says it.
bool passes_floats_in_fpu(const Target& t) { return t.triple.ends_with("eabihf"); }

bool is_cortex_m_with_fpu(const Target& t) { return t.triple.ends_with("-none-eabihf"); }

// AAPCS's base variant.
void pass_floats_in_integer_registers(Target& t) { t.triple.resize(t.triple.size() - 2); }

// A part without FPU: floats are those of a Cortex-M3. LLVM's fpregs is what all floating point needs.
void remove_fpu(Target& t) {
  pass_floats_in_integer_registers(t);
  t.features += t.features.empty() ? "-fpregs" : ",-fpregs";
  t.required_features &= ~uint64_t{QNL_ARM_VFP4_SP | QNL_ARM_VFP4_DP};
  t.has_f32 = t.has_f64 = t.has_fma = t.has_f16 = false;
  t.vector_registers = 8;
}

bool is_vulkan(const Target& t) { return t.is_gpu(); }

// Devices convert f16, and so compute with it.
void add_f16(Target& t) {
  t.required_features |= QNL_SPIRV_FLOAT16;
  t.has_f16 = t.adds_f16 = true;
}

bool is_x86(const Target& t) { return t.arch == QNL_ARCH_X86_64; }
void follow_streams(Target& t) { t.follows_streams = true; }

struct CodeOption {
  std::string_view name;
  // Whether it changes anything of a target.
  bool (*is_for)(const Target&);
  // Features of the target that cannot do without what the option takes away, and the diagnostic's words for that.
  uint64_t needed_by;
  std::string_view reason, hint;
  void (*apply)(Target&);
};

constexpr CodeOption kOptions[] = {
    {"noprefetch", is_x86, 0, {}, {}, follow_streams},
    {"f16sums", is_vulkan, 0, {}, {}, add_f16},
    {"nofp", is_cortex_m_with_fpu, QNL_ARM_MVE_INT, "vectors (Helium) lie in the registers of the FPU",
     "name cortex-m33+nofp, whose code runs on this core", remove_fpu},
    {"softfp", is_cortex_m_with_fpu, 0, {}, {}, pass_floats_in_integer_registers},
};

bool takes(const Target& target, const CodeOption& option) {
  return option.is_for(target) && (target.required_features & option.needed_by) == 0;
}

}  // namespace

std::vector<std::string_view> code_options_of(const Target& target) {
  std::vector<std::string_view> names;
  for (const CodeOption& option : kOptions)
    if (takes(target, option)) names.push_back(option.name);
  return names;
}

Expected<bool> add_code_option(Target& target, std::string_view whole, std::string_view name) {
  const CodeOption* option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                          [&](const CodeOption& o) { return o.name == name; });
  if (option == std::end(kOptions) || !option->is_for(target)) return false;
  if (!takes(target, *option))
    return invalid_input("target '" + std::string(whole) + "': '" + target.name + "' cannot take '" +
                             std::string(name) + "': " + std::string(option->reason),
                         {}, std::string(option->hint));
  const std::string suffix = "+" + std::string(name);
  if (target.name.ends_with(suffix)) return true;  // as "native" has it
  target.name += suffix;
  option->apply(target);
  return true;
}

bool calls_alike(const Target& a, const Target& b) {
  return a.abi == b.abi && passes_floats_in_fpu(a) == passes_floats_in_fpu(b);
}

}  // namespace quernel
