// The keys of kernels that walk over elements: what the kernel computes, of which dtypes, over which extents, and at
// which strides it loads and stores. Numbers of values are not in it, so that equal kernels share a choice.
#pragma once

#include <string>

#include "schedule/plans/access_walk.h"
#include "schedule/plans/loop_plan.h"

namespace quernel::schedule {

// "map 2*mul,exp axes 64 300 reads f32:300:1 2*f32:0:1 writes f32:300:1": strides along the axes, ~ where they are no
// number. `walk`: over `loops`, with all loads and stores. `detail` follows the ops. `other`: what axes of class 1 are.
std::string loop_key(const Schedule& schedule, const Group& group, const LoopPlan& loops,
                     const AccessWalk& walk, std::string_view detail, std::string_view other);

// "rows reduce_max,sub reads f32:8:300 writes f32:8:300", with extents: where only the work per workgroup can be chosen.
std::string work_key(const Schedule& schedule, const Group& group);

}  // namespace quernel::schedule
