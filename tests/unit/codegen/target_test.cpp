// Presets are found by name; mistakes are answered with the nearest name and all names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "schemas/kernel_abi.h"
#include "targets/device_profile.h"
#include "targets/forms.h"
#include "targets/target.h"

namespace quernel {
namespace {

TEST(Target, every_name_is_found) {
  for (std::string_view name : target_names()) {
    auto target = find_target(name);
    ASSERT_TRUE(target);
    EXPECT_EQ(target->name, name);
    EXPECT_FALSE(target->description.empty());
    EXPECT_TRUE(target->bare_metal || target->required_features != 0);
    EXPECT_GE(target->lanes(8), 1);
    EXPECT_EQ(target->triple.empty(), target->is_gpu() || has_only_c(*target));
  }
}

TEST(Target, microcontrollers_have_what_their_cores_have) {
  struct Facts {
    const char* name;
    bool f32, f64, vectors, pairs;
  };
  for (const Facts& facts : {Facts{"cortex-m0", false, false, false, false},
                             {"cortex-m23", false, false, false, false},
                             {"cortex-m3", false, false, false, false},
                             {"cortex-m4", true, false, false, true},
                             {"cortex-m85", true, true, true, false},
                             {"riscv32imac", false, false, false, false},
                             {"riscv32imafc", true, false, false, false}}) {
    const Target target = *find_target(facts.name);
    EXPECT_TRUE(target.bare_metal) << facts.name;
    EXPECT_TRUE(target.cpu == facts.name || target.arch == QNL_ARCH_RISCV32) << facts.name;
    EXPECT_EQ(target.has_f32, facts.f32) << facts.name;
    EXPECT_EQ(target.has_f64, facts.f64) << facts.name;
    EXPECT_EQ(target.lanes(4) > 1, facts.vectors) << facts.name;
    EXPECT_EQ(target.has_dot_pairs, facts.pairs) << facts.name;
  }
}

TEST(Target, native_is_a_preset) {
  auto target = find_target("native");
  ASSERT_TRUE(target);
  auto names = target_names();
  const std::string preset = target->name.substr(0, target->name.find('+'));
  EXPECT_NE(std::find(names.begin(), names.end(), preset), names.end()) << target->name;
}

TEST(Target, kernels_ask_ahead_unless_the_machine_follows_streams) {
  const Target plain = *find_target("x86-64-v3"), option = *find_target("x86-64-v3+noprefetch");
  EXPECT_TRUE(plain.asks_ahead());
  EXPECT_FALSE(option.asks_ahead());
  EXPECT_EQ(option.required_features, plain.required_features);
  EXPECT_EQ(find_target("native+noprefetch")->name, find_target("native")->asks_ahead()
                                                        ? find_target("native")->name + "+noprefetch"
                                                        : find_target("native")->name);
  EXPECT_FALSE(find_target("cortex-a76+noprefetch"));
  EXPECT_FALSE(find_target("vulkan")->asks_ahead());
  EXPECT_FALSE(find_target("cortex-m4")->asks_ahead());
}

TEST(Target, mistakes_get_suggestions) {
  auto target = find_target("x86_64-v3");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].kind, DiagnosticKind::kInvalidInput);
  EXPECT_NE(target.errors()[0].hint.find("'x86-64-v3'"), std::string::npos);
  for (std::string_view name : target_names())
    EXPECT_NE(target.errors()[0].message.find(name), std::string::npos);
}

TEST(Target, higher_levels_run_code_of_lower_ones) {
  std::vector<std::string> levels = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v4-vnni"};
  for (size_t a = 0; a < levels.size(); ++a)
    for (size_t b = 0; b < levels.size(); ++b)
      EXPECT_EQ(runs_code_of(*find_target(levels[a]), *find_target(levels[b])), a >= b)
          << levels[a] << levels[b];
  Target other = *find_target("x86-64");
  other.arch = QNL_ARCH_AARCH64;
  EXPECT_FALSE(runs_code_of(*find_target("x86-64-v4"), other));
}

TEST(Target, features_are_added) {
  auto target = find_target("cortex-a53+i8mm");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->name, "cortex-a53+i8mm");
  EXPECT_TRUE(target->has_dot_u8_s8 && target->has_dot_s8_s8 && target->has_dot_u8_u8);
  EXPECT_TRUE(runs_code_of(*target, *find_target("cortex-a53+dotprod")));
  EXPECT_FALSE(runs_code_of(*find_target("cortex-a53"), *target));
  EXPECT_EQ(find_target("cortex-a76+dotprod")->name, "cortex-a76");  // it has them already
  EXPECT_EQ(target->required_features, QNL_AARCH64_NEON | QNL_AARCH64_DOTPROD | QNL_AARCH64_I8MM);
  EXPECT_EQ(target->features, "+dotprod,+i8mm");  // what it needs, too
  EXPECT_EQ(find_target("cortex-a76+i8mm")->features, "+i8mm");
  EXPECT_EQ(find_target("x86-64-v4+bf16")->required_features, QNL_X86_64_V4 | QNL_X86_64_AVX512_BF16);
  auto wide = find_target("riscv64-v+vlen512");
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->vector_bytes, 64);
  EXPECT_TRUE(runs_code_of(*wide, *find_target("riscv64-v+vlen256")));
}

TEST(Target, microcontrollers_may_lack_an_fpu) {
  for (const char* core : {"cortex-m4", "cortex-m7", "cortex-m33"}) {
    auto target = find_target(std::string(core) + "+nofp");
    ASSERT_TRUE(target);
    EXPECT_EQ(target->name, std::string(core) + "+nofp");
    EXPECT_FALSE(target->has_f32 || target->has_f64 || target->has_fma || target->has_f16);
    EXPECT_TRUE(target->has_dot_pairs && target->cpu == core);
    EXPECT_TRUE(target->triple.ends_with("-eabi")) << target->triple;
    EXPECT_TRUE(target->features.ends_with("-fpregs")) << target->features;
    EXPECT_THAT(optional_features(*find_target(core)), testing::ElementsAre("nofp", "softfp"));
    EXPECT_THAT(optional_features(*target), testing::IsEmpty());
    // A core with an FPU has all these instructions, but calls of one code do not fit the other.
    EXPECT_FALSE(runs_code_of(*find_target(core), *target));
    EXPECT_TRUE(runs_code_of(*target, *find_target("cortex-m3")));
  }
  auto target = find_target("cortex-m55+nofp");
  ASSERT_FALSE(target);
  EXPECT_EQ(
      target.errors()[0].message,
      "target 'cortex-m55+nofp': 'cortex-m55' cannot take 'nofp': vectors (Helium) lie in the registers of "
      "the FPU");
  EXPECT_EQ(target.errors()[0].hint, "name cortex-m33+nofp, whose code runs on this core");
  target = find_target("cortex-m3+nofp");  // which has none anyway
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].message,
            "target 'cortex-m3+nofp': 'cortex-m3' takes no features, found 'nofp'");
  EXPECT_FALSE(find_target("armv7+nofp"));
  target = find_target("cortex-m4+nofpu");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].message,
            "target 'cortex-m4+nofpu': expected a feature of nofp, softfp, found 'nofpu'");
}

TEST(Target, microcontrollers_with_an_fpu_have_two_ways_to_pass_floats) {
  for (const char* core : {"cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85"}) {
    const Target hard = *find_target(core);
    auto soft = find_target(std::string(core) + "+softfp");
    ASSERT_TRUE(soft);
    EXPECT_EQ(soft->triple + "hf", hard.triple);
    EXPECT_EQ(soft->features, hard.features);
    EXPECT_EQ(soft->required_features, hard.required_features);
    EXPECT_TRUE(soft->has_f32 && soft->has_fma);
    EXPECT_FALSE(runs_code_of(hard, *soft) || runs_code_of(*soft, hard));
  }
  EXPECT_TRUE(runs_code_of(*find_target("cortex-m4+softfp"), *find_target("cortex-m4+nofp")));
  EXPECT_FALSE(find_target("cortex-m4+softfp+nofp"));
  EXPECT_FALSE(find_target("cortex-m0+softfp"));
}

TEST(Target, riscv_microcontrollers_with_an_fpu_pass_floats_in_it) {
  const Target imc = *find_target("riscv32imc"), imac = *find_target("riscv32imac"),
               imafc = *find_target("riscv32imafc");
  EXPECT_EQ(imc.abi + imac.abi, "");
  EXPECT_EQ(imafc.abi, "ilp32f");
  EXPECT_TRUE(runs_code_of(imac, imc));
  EXPECT_FALSE(runs_code_of(imafc, imac) || runs_code_of(imac, imafc));
}

TEST(Target, sve_has_one_length) {
  auto target = find_target("aarch64+sve512");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->vector_bytes, 64);
  EXPECT_TRUE(target->has_masks && target->has_gather);
  EXPECT_EQ(find_target("cortex-a710+sve256")->lanes(4), 8);
  target = find_target("aarch64+sve256+sve512");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].message,
            "target 'aarch64+sve256+sve512': expected a feature of dotprod, i8mm, sve256, found 'sve512'");
}

TEST(Target, some_multiply_bf16) {
  auto target = find_target("x86-64-v4-vnni+bf16");
  ASSERT_TRUE(target);
  EXPECT_TRUE(target->has_dot_bf16 && target->has_dot_u8_s8);
  EXPECT_FALSE(find_target("x86-64-v4-vnni")->has_dot_bf16);
  EXPECT_TRUE(runs_code_of(*target, *find_target("x86-64-v4+bf16")));
  EXPECT_FALSE(runs_code_of(*find_target("x86-64-v4-vnni"), *target));
  EXPECT_FALSE(find_target("x86-64-v3+bf16"));  // which has no vectors of 512 bits
}

TEST(Target, gpus_may_have_subgroups) {
  Target plain = *find_target("vulkan");
  auto target = find_target("vulkan+subgroups");
  ASSERT_TRUE(target);
  EXPECT_FALSE(plain.has_subgroups);
  EXPECT_TRUE(target->has_subgroups);
  EXPECT_EQ(target->required_features, plain.required_features | QNL_SPIRV_SUBGROUPS);
  EXPECT_TRUE(runs_code_of(*target, plain));
  EXPECT_FALSE(runs_code_of(plain, *target));
  EXPECT_THAT(optional_features(plain), testing::ElementsAre("subgroups", "dotprod", "float16", "coopmat",
                                                             "coopmat-int8", "coopmat-bf16", "f16sums"));
  EXPECT_EQ(find_target("vulkan+subgroups/x86-64-v3")->name, "vulkan+subgroups/x86-64-v3");
}

TEST(Target, sums_of_halves_need_a_device_that_computes_with_them) {
  const Target plain = *find_target("vulkan+float16"), target = *find_target("vulkan+f16sums");
  EXPECT_EQ(target.required_features, plain.required_features);
  EXPECT_TRUE(target.multiplies(DType::kF16));
  EXPECT_FALSE(plain.multiplies(DType::kF16));
  EXPECT_FALSE(find_target("x86-64-v3+f16sums"));
}

TEST(Target, mistaken_features_get_suggestions) {
  auto target = find_target("cortex-a76+i8m");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].message,
            "target 'cortex-a76+i8m': expected a feature of dotprod, i8mm, sve256, sve512, found 'i8m'");
  EXPECT_EQ(target.errors()[0].hint, "did you mean 'i8mm'? `quernel targets` lists what each preset takes");
  target = find_target("riscv64+vlen256");  // only V has registers of a length
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].message,
            "target 'riscv64+vlen256': 'riscv64' takes no features, found 'vlen256'");
  EXPECT_FALSE(find_target("cortex-a76+"));
  EXPECT_FALSE(find_target("+i8mm"));
}

TEST(Target, device_profiles_replace_facts) {
  Target target = *find_target("vulkan"), copy = target;
  ASSERT_TRUE(
      apply_device_profile(target, "# a GPU\n\nregisters 96  # words\nmemory_bytes_per_second 4e11\n", "p"));
  EXPECT_EQ(target.vector_registers, 96);
  EXPECT_EQ(target.memory_bytes_per_second, 4e11);
  EXPECT_EQ(target.flops_per_second, copy.flops_per_second);
  ASSERT_TRUE(apply_device_profile(copy, device_profile_text(target), "p"));  // what is printed is read
  EXPECT_EQ(device_profile_text(copy), device_profile_text(target));
}

TEST(Target, mistaken_device_profiles_are_refused) {
  Target target = *find_target("vulkan");
  Status status = apply_device_profile(target,
                                       "registers many\n"
                                       "flops 1e12\n"
                                       "registers 48.5\n"
                                       "dispatch_seconds -1\n"
                                       "transfer_seconds 0\ntransfer_seconds 0\n",
                                       "p");
  ASSERT_FALSE(status);
  const Diagnostics& errors = status.errors();
  ASSERT_EQ(errors.size(), 5U);
  EXPECT_EQ(errors[0].message, "expected a fact and its number, found 'registers many'");
  EXPECT_EQ(errors[1].message.find("fact 'flops': expected one of registers, "), 0U);
  EXPECT_EQ(errors[2].message, "registers: expected a whole number from 16 to 256, found 48.5");
  EXPECT_EQ(errors[3].message, "dispatch_seconds: expected a number from 0 to 1, found -1");
  EXPECT_EQ(errors[4].message, "transfer_seconds: expected one line for each fact, found another");
  status = read_device_profile(target, "/nonexistent/profile");
  ASSERT_FALSE(status);
  EXPECT_EQ(
      status.errors()[0].message.find("cannot be read: expected a device profile, or the name of one of "),
      0U);
  for (const DevicePreset& preset : device_presets())
    EXPECT_NE(status.errors()[0].message.find(preset.name), std::string::npos);
}

TEST(Target, named_device_profiles_are_applied) {
  const Target plain = *find_target("vulkan");
  for (const DevicePreset& preset : device_presets()) {
    Target target = plain;
    Status status = read_device_profile(target, std::string(preset.name));
    ASSERT_TRUE(status) << preset.name << to_string(status.errors());
    EXPECT_FALSE(preset.description.empty());
    EXPECT_NE(target.flops_per_second, plain.flops_per_second) << preset.name;
    EXPECT_NE(target.memory_bytes_per_second, plain.memory_bytes_per_second) << preset.name;
    EXPECT_GE(target.workgroup_memory, plain.workgroup_memory) << preset.name;
    // An invocation's multiply-adds need more of the memory than it has: a slip of a thousand would show.
    double operations_of_byte = target.flops_per_second / target.memory_bytes_per_second;
    EXPECT_GT(operations_of_byte, 1) << preset.name;
    EXPECT_LT(operations_of_byte, 100) << preset.name;
  }
}

TEST(Target, nonsense_gets_no_suggestion) {
  auto target = find_target("quantum");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.errors()[0].hint.find("did you mean"), std::string::npos);
}

}  // namespace
}  // namespace quernel
