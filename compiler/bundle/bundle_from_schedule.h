// Turns schedules and images into the contents of a bundle: arenas, bindings, items and constants; per entry
// point one plan for each variant.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "codegen/llvm/compile_kernels.h"
#include "schedule/schedule.h"

namespace quernel::bundle {

// The dispatch of a schedule's item.
struct Dispatch {
  int kernel = -1;                            // index in the image; -1: the item is no dispatch
  std::vector<Dim> symbols;                   // the kernel's launch-time symbols, or the custom op's dims
  Dim workgroups = 0;                         // the total of its grid
  std::vector<std::vector<Dispatch>> bodies;  // for a node with bodies: one per item of each body
  bool may_fail = false;                      // workgroups is negative if the item has no result
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
  codegen::Image companion_image;  // for target.companion, if there is one
  std::vector<CompiledEntry> entries;
};

// Requires `variants` with the same entry points, named as their graphs, each with the same signature in all
// variants. States of equal names in several entry points are one state. The contents refer to constants of
// `variants`, which must stay alive until they are written. Equal constants are stored once.
BundleContents bundle_from_schedule(const std::vector<CompiledVariant>& variants,
                                    const std::string& producer);

}  // namespace quernel::bundle
