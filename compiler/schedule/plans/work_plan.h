// How the work of a kernel is divided. A contraction's tiles are in
// contraction/contraction_plan.h.
#pragma once

#include <cstdint>

namespace quernel::schedule {

struct WorkPlan {
  // The work of one workgroup: elements of a map, a cat or rows; terms of a reduction; steps of an ordered
  // kernel; tiles of a Winograd transform; multiply-adds of attention. 0: plan-kernels has not run, or another
  // plan says it.
  int64_t group_work = 0;
  bool selects = false;  // an argsort: a heap finds the first elements of a line; else all are sorted
};

}  // namespace quernel::schedule
