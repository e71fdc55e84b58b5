// Looks targets up by name: a preset, "native" included, with features and code options added to it. A mistyped name is
// answered with the nearest one and all legal ones.
#include <algorithm>

#include "support/edit_distance.h"
#include "targets/target_files.h"

namespace quernel {
namespace {

const std::vector<Target>& presets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> list;
#define QUERNEL_TARGET_FILE(file) \
  for (Target & t : file##_targets()) list.push_back(std::move(t));
#include "targets/targets.def"
    return list;
  }();
  return all;
}

// The best preset of this machine; empty where it is no x86-64.
std::string_view native_name() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("x86-64-v4"))
    return __builtin_cpu_supports("avx512vnni") ? "x86-64-v4-vnni" : "x86-64-v4";
  if (__builtin_cpu_supports("x86-64-v3")) return "x86-64-v3";
  if (__builtin_cpu_supports("x86-64-v2")) return "x86-64-v2";
  return "x86-64";
#else
  return {};
#endif
}

// Zen 4, where kernels that ask for lines ahead take up to 1.3 times as long (schedule/contraction/plan_walk.cpp).
bool follows_streams() {
#if defined(__x86_64__)
  return __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("x86-64-v4");
#else
  return false;
#endif
}

std::string legal_names() {
  std::string text = "native";
  for (const Target& t : presets()) text += ", " + t.name;
  return text;
}

Expected<Target> find_preset(std::string_view name) {
  std::string_view wanted = name;
  if (name == "native") {
    wanted = native_name();
    if (wanted.empty())
      return unsupported("target 'native': no preset describes this machine", {},
                         "name one of: " + legal_names());
  }
  for (const Target& t : presets()) {
    if (t.name != wanted) continue;
    Target target = t;
    if (name == "native" && follows_streams()) QUERNEL_CHECK(add_code_option(target, name, "noprefetch"));
    return target;
  }

  std::string_view nearest = "native";
  size_t best = edit_distance(name, nearest);
  for (const Target& t : presets())
    if (size_t d = edit_distance(name, t.name); d < best) best = d, nearest = t.name;
  std::string hint;
  if (best <= std::max<size_t>(2, name.size() / 2)) hint = "did you mean '" + std::string(nearest) + "'? ";
  return invalid_input("target: expected PRESET[+FEATURE]... with a preset of " + legal_names() +
                           ", found '" + std::string(name) + "'",
                       {}, hint + "`quernel targets` describes each");
}

// A feature that can be added to `target`; `whole` is what the user wrote. Code options are among the legal names.
Expected<const TargetFeature*> find_feature(const Target& target, std::string_view whole,
                                            std::string_view name) {
  std::string legal, nearest;
  size_t best = std::max<size_t>(2, name.size() / 2) + 1;
  auto note_legal = [&](std::string_view option) {
    legal += (legal.empty() ? "" : ", ") + std::string(option);
    if (size_t d = edit_distance(name, option); d < best) best = d, nearest = option;
  };
  for (const TargetFeature* feature : features_of(target)) {
    if (feature->option == name) return feature;
    note_legal(feature->option);
  }
  for (std::string_view option : code_options_of(target)) note_legal(option);
  std::string text = "target '" + std::string(whole) + "': ";
  text += legal.empty() ? "'" + target.name + "' takes no features" : "expected a feature of " + legal;
  text += ", found '" + std::string(name) + "'";
  return invalid_input(text, {},
                       (nearest.empty() ? "" : "did you mean '" + nearest + "'? ") +
                           std::string("`quernel targets` lists what each preset takes"));
}

}  // namespace

std::vector<std::string_view> target_names() {
  std::vector<std::string_view> names;
  for (const Target& t : presets()) names.push_back(t.name);
  return names;
}

std::vector<std::string_view> optional_features(const Target& target) {
  std::vector<std::string_view> names;
  for (const TargetFeature* feature : features_of(target))
    if ((feature->bit & ~target.required_features) != 0) names.push_back(feature->option);
  for (std::string_view option : code_options_of(target)) names.push_back(option);
  return names;
}

namespace {
// PRESET[+FEATURE]...
Expected<Target> find_processor(std::string_view name) {
  size_t end = std::min(name.find('+'), name.size());
  QUERNEL_TRY(Target target, find_preset(name.substr(0, end)));
  while (end < name.size()) {
    size_t begin = end + 1;
    end = std::min(name.find('+', begin), name.size());
    std::string_view option = name.substr(begin, end - begin);
    QUERNEL_TRY(bool is_code_option, add_code_option(target, name, option));
    if (is_code_option) continue;
    QUERNEL_TRY(const TargetFeature* feature, find_feature(target, name, option));
    add_feature(target, *feature);
  }
  return target;
}
}  // namespace

Expected<Target> find_target(std::string_view name) {
  size_t slash = name.find('/');
  QUERNEL_TRY(Target target, find_processor(name.substr(0, slash)));
  if (slash == std::string_view::npos) return target;
  QUERNEL_TRY(Target companion, find_processor(name.substr(slash + 1)));
  if (!target.is_gpu() || companion.is_gpu() || companion.bare_metal)
    return invalid_input("target: expected GPU/CPU, found '" + std::string(name) + "'", {},
                         "name a GPU and its companion CPU, vulkan/native say");
  target.name += "/" + companion.name;
  target.companion = std::make_shared<const Target>(std::move(companion));
  return target;
}

bool runs_code_of(const Target& target, const Target& other) {
  uint64_t has = with_needs(target.arch, target.required_features);
  return target.arch == other.arch && (other.required_features & ~has) == 0 && calls_alike(target, other);
}

}  // namespace quernel
