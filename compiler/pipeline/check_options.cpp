#include "pipeline/check_options.h"

#include <algorithm>

#include "schedule/target_passes/target_passes.h"
#include "targets/device_profile.h"
#include "targets/forms.h"

namespace quernel {
namespace {

bool ask_the_same(const Target& a, const Target& b) {
  return a.arch == b.arch && a.required_features == b.required_features && !a.companion == !b.companion &&
         (!a.companion || ask_the_same(*a.companion, *b.companion));
}

Status check_form(const Target& target, const CompileOptions& options) {
  bool is_program = options.emit != Emit::kBundle;
  if (has_only_c(target) && options.emit != Emit::kC && options.stop_after.empty())
    return unsupported("target '" + target.name + "': there is no machine code for it, only C", {},
                       "compile with --emit=c, or name the machine's target");
  if (target.bare_metal && !is_program && options.stop_after.empty())
    return unsupported(
        "target '" + target.name + "': its kernels are linked into firmware, bundles hold none", {},
        "name a target that runs Linux, or compile for firmware with --emit=static");
  if (target.is_gpu() && is_program)
    return unsupported("target '" + target.name + "': " + name_of_form(options.emit) + " cannot hold shaders",
                       {}, "compile a bundle (--emit=bundle)");
  return {};
}

}  // namespace

std::string name_of_form(Emit emit) {
  return emit == Emit::kBundle ? "bundle" : emit == Emit::kC ? "C files" : "a static library";
}

Expected<std::vector<Target>> targets_of(const CompileOptions& options) {
  if (options.emit != Emit::kBundle && options.targets.size() != 1)
    return invalid_input("expected one target for " + name_of_form(options.emit) + ", found " +
                         std::to_string(options.targets.size()));
  std::vector<Target> targets;
  for (const std::string& name : options.targets) {
    QUERNEL_TRY(Target target, find_target(name));
    targets.push_back(std::move(target));
  }
  bool for_gpu = std::any_of(targets.begin(), targets.end(), [](const Target& t) { return t.is_gpu(); });
  if (!options.device_profile.empty() && !for_gpu)
    return invalid_input(
        "device profile '" + options.device_profile + "': expected a GPU among the targets, found none", {},
        "name one (--target=vulkan), or leave the profile out");
  for (auto it = targets.begin(); it != targets.end(); ++it) {
    if (it->is_gpu() && !options.device_profile.empty())
      QUERNEL_CHECK(read_device_profile(*it, options.device_profile));
    QUERNEL_CHECK(check_form(*it, options));
    for (auto other = targets.begin(); other != it; ++other)
      if (ask_the_same(*other, *it))
        return invalid_input("targets '" + other->name + "' and '" + it->name +
                                 "' ask the same of a device: it would never choose the second",
                             {}, "leave one of them out");
  }
  return targets;
}

Status check_place_rules(const std::vector<Graph>& graphs, const std::vector<Target>& targets,
                         const CompileOptions& options) {
  if (options.place.empty()) return {};
  if (std::none_of(targets.begin(), targets.end(), [](const Target& t) { return t.companion != nullptr; }))
    return invalid_input(
        "--place: expected a target that is a GPU with a companion CPU, found '" + options.targets[0] + "'",
        {}, "name one, --target vulkan/native say");
  for (const PlaceRule& rule : options.place)
    if (std::none_of(graphs.begin(), graphs.end(),
                     [&](const Graph& graph) { return schedule::names_a_node(rule, graph); }))
      return invalid_input("--place: no node has a name like '" + rule.pattern + "'", {},
                           "`quernel inspect --schedule` shows the nodes' names");
  return {};
}

}  // namespace quernel
