// From schedules and images to the contents of a bundle: arenas, bindings, items and constants, one plan per
// variant.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "codegen/llvm/compile_kernels.h"
#include "schedule/schedule.h"

namespace quernel::bundle {

// One target's share of a bundle. kernel_of_item[i] is the kernel (of the image) that item i dispatches;
// workgroups[i] its grid's total.
struct CompiledVariant {
  Target target;
  schedule::Schedule schedule;
  codegen::Image image;
  std::vector<int> kernel_of_item;
  std::vector<int64_t> workgroups;
};

// `variants` share the entry point's signature. The contents refer to the constants held by `variants`, which
// must stay alive until they are written. Equal constants of several variants are stored once.
BundleContents bundle_from_schedule(const std::vector<CompiledVariant>& variants,
                                    const std::string& producer);

}  // namespace quernel::bundle
