// quernel targets: the presets that --target names, with their facts and the features that may be added.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "command.h"
#include "feature_names.h"
#include "json.h"
#include "ops/support.h"
#include "print.h"
#include "targets/device_profile.h"
#include "targets/forms.h"
#include "targets/target.h"

namespace quernel::tools {
namespace {

// What one instruction multiplies and sums, bytes by fours, bf16 by twos.
std::vector<std::string_view> dot_operands(const Target& target) {
  std::vector<std::string_view> operands;
  if (target.has_dot_u8_s8) operands.push_back("u8*s8");
  if (target.has_dot_s8_s8) operands.push_back("s8*s8");
  if (target.has_dot_u8_u8) operands.push_back("u8*u8");
  if (target.has_dot_bf16) operands.push_back("bf16*bf16");
  return operands;
}

Json to_json(const Target& target, bool native) {
  Json::Array features;
  for (std::string& name : feature_names(target.arch, target.required_features))
    features.push_back(std::move(name));
  Json::Array takes, dots;
  for (std::string_view name : optional_features(target)) takes.push_back(std::string(name));
  for (std::string_view operands : dot_operands(target)) dots.push_back(std::string(operands));
  Json::Array profiles;
  if (target.is_gpu())
    for (const DevicePreset& preset : device_presets())
      profiles.push_back(
          Json::Object{{"name", std::string(preset.name)}, {"description", std::string(preset.description)}});
  return Json::Object{{"name", target.name},
                      {"description", target.description},
                      {"native", native},
                      {"arch", arch_name(target.arch)},
                      {"triple", target.triple},
                      {"cpu", target.cpu},
                      {"features", target.features},
                      {"abi", target.abi},
                      {"required_features", std::move(features)},
                      {"optional_features", std::move(takes)},
                      {"vector_bytes", target.vector_bytes},
                      {"vector_registers", target.vector_registers},
                      {"fma", target.has_fma},
                      {"masks", target.has_masks},
                      {"gather", target.has_gather},
                      {"f16", target.has_f16},
                      {"dot_products", std::move(dots)},
                      {"l1_bytes", target.l1_bytes},
                      {"l2_bytes", target.l2_bytes},
                      {"peak_fma_per_cycle", target.peak_fma_per_cycle},
                      {"f32", target.has_f32},
                      {"f64", target.has_f64},
                      {"single_issue", target.single_issue},
                      {"firmware", target.bare_metal},
                      {"workgroup_memory", target.workgroup_memory},
                      {"subgroups", target.has_subgroups},
                      {"device_profiles", std::move(profiles)}};
}

void print_text(const Target& target, bool native) {
  print("{}{}: {}\n", target.name, native ? " (native: this machine)" : "", target.description);
  if (target.is_gpu()) {
    print("    workgroup {} invocations, {} KiB of shared memory\n", target.lanes(4),
          target.workgroup_memory >> 10);
    print("    requires  {}, and what the model's dtypes need\n",
          feature_text(target.arch, target.required_features));
    print("    takes     +{}\n", fmt::join(optional_features(target), " +"));
    std::string_view label = "profiles";
    for (const DevicePreset& preset : device_presets()) {
      print("    {:<8}  {}: {}; published figures\n", label, preset.name, preset.description);
      label = "";
    }
    return;
  }
  if (has_only_c(target)) return print("    firmware  for compile --emit c\n");
  print("    vectors   {} x {} bits{}{}{}{}\n", target.vector_registers, target.vector_bytes * 8,
        target.has_fma ? ", fma" : "", target.has_masks ? ", masks" : "", target.has_gather ? ", gather" : "",
        target.has_f16 ? ", f16 conversion" : "");
  if (auto dots = dot_operands(target); !dots.empty()) print("    dots      {}\n", fmt::join(dots, ", "));
  print("    caches    L1 {} KiB, L2 {} KiB\n", target.l1_bytes >> 10, target.l2_bytes >> 10);
  print("    llvm      {}, cpu {}{}{}{}{}\n", target.triple, target.cpu, target.features.empty() ? "" : ", ",
        target.features, target.abi.empty() ? "" : ", abi ", target.abi);
  print("    requires  {}\n", feature_text(target.arch, target.required_features));
  if (auto features = optional_features(target); !features.empty())
    print("    takes     +{}\n", fmt::join(features, " +"));
  if (!target.has_f64)
    print("    library   {} arithmetic is the toolchain's\n", target.has_f32 ? "f64" : "f32 and f64");
  if (target.bare_metal) print("    firmware  for compile --emit static\n");
}

int run(bool json) {
  std::string native;
  if (Expected<Target> target = find_target("native"))
    native = target->name.substr(0, target->name.find('+'));
  Json::Array list;
  for (std::string_view name : target_names()) {
    Expected<Target> target = find_target(name);
    if (!target) return fail(target.errors());
    if (json)
      list.push_back(to_json(*target, target->name == native));
    else
      print_text(*target, target->name == native);
  }
  if (json) fmt::print("{}", Json(std::move(list)).dump());
  return kOk;
}

}  // namespace

Action define_targets(CLI::App& app) {
  auto json = std::make_shared<bool>(false), ops = std::make_shared<bool>(false);
  app.add_flag("--json", *json, "print a JSON array instead of text");
  app.add_flag("--ops", *ops, "print what each core op does with each dtype on each device, as markdown");
  return [json, ops] {
    if (!*ops) return run(*json);
    fmt::print("{}", quernel::ops::support_table());
    return static_cast<int>(kOk);
  };
}

}  // namespace quernel::tools
