// From schedules and images to the contents of a bundle: arenas, bindings, items and constants; per entry
// point one plan for each variant.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "codegen/llvm/compile_kernels.h"
#include "schedule/schedule.h"

namespace quernel::bundle {

// What an item of the schedule dispatches.
struct Dispatch {
  int kernel = -1;                            // of the image; -1: the item is no dispatch
  std::vector<Dim> symbols;                   // the kernel's launch-time symbols, or the custom op's dims
  Dim workgroups = 0;                         // its grid's total
  std::vector<std::vector<Dispatch>> bodies;  // of a node with bodies: one per item of each body
  bool may_fail = false;  // where the item has no result there are fewer than 0 workgroups
};

// An entry point for one target; one dispatch per item of the schedule.
struct CompiledEntry {
  schedule::Schedule schedule;
  std::vector<Dispatch> dispatches;
};

// One target's share of a bundle: the kernels of all entry points in one image.
struct CompiledVariant {
  Target target;
  codegen::Image image;
  codegen::Image host_image;  // of target.host, where there is one
  std::vector<CompiledEntry> entries;
};

// `variants` have the same entry points, each with the same signature in all, named as their graphs. States
// of several entry points that have one name are one state. The contents refer to the constants held by
// `variants`, which must stay alive until they are written. Equal constants are stored once.
BundleContents bundle_from_schedule(const std::vector<CompiledVariant>& variants,
                                    const std::string& producer);

}  // namespace quernel::bundle
