// One function per file of targets.def: its presets, weakest first; and the features that may be added to
// them, those of schemas/features.def that have an option. Only find_target.cpp calls them.
#pragma once

#include <vector>

#include "targets/target.h"

namespace quernel {

#define QUERNEL_TARGET_FILE(file) std::vector<Target> file##_targets();
#include "targets/targets.def"

// A line of schemas/features.def, and what it adds to the facts of a target; null where it has no option.
struct TargetFeature {
  qnl_arch arch;
  uint64_t bit;
  std::string_view option, llvm;
  uint64_t needs;
  void (*add_facts)(Target&);
};
// Those that may be added to a target, those that it has already among them.
std::vector<const TargetFeature*> features_of(const Target& target);
// Adds a feature, what it needs, and its option to the target's name; changes nothing where the target has it
// already.
void add_feature(Target& target, const TargetFeature& feature);
// The features, what they need, what that needs, and so on.
uint64_t with_needs(qnl_arch arch, uint64_t features);

// Names of the code options (code_options.cpp) that a target takes.
std::vector<std::string_view> code_options_of(const Target& target);
// Adds a code option to a target and to its name; false where none of that name is for such targets. An error: the
// target cannot do without what the option takes away. `whole` is what the user wrote.
Expected<bool> add_code_option(Target& target, std::string_view whole, std::string_view name);
// Whether code for one calls code for the other as that expects it.
bool calls_alike(const Target& a, const Target& b);

}  // namespace quernel
