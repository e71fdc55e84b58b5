// One function per file of targets.def: its presets, weakest first; and the features that may be added to
// them. Only find_target.cpp calls them.
#pragma once

#include <vector>

#include "targets/target.h"

namespace quernel {

#define QUERNEL_TARGET_FILE(file) std::vector<Target> file##_targets();
#include "targets/targets.def"

// A feature that some targets may have besides (target_features.cpp).
struct TargetFeature {
  std::string_view name;
  qnl_arch arch;
  std::string_view llvm;  // features for LLVM
  uint64_t needs, adds;   // QNL_FEATURE_* bits
  void (*add_facts)(Target&);
};
// Those that may be added to a target, those that it has already among them.
std::vector<const TargetFeature*> features_of(const Target& target);
// Names it, too; changes nothing where the target has it already.
void add_feature(Target& target, const TargetFeature& feature);

}  // namespace quernel
