// How a scatter's kernel goes through its template and updates, as data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quernel::schedule {

struct ScatterPlan {
  // Indices address dims [first, first + addressed) of the template. The dims [first, first + numbers) of the
  // updates number them. The other dims are slices, which updates do not leave.
  size_t first = 0, addressed = 1, numbers = 1;
  size_t vector_dim = 0;  // the template's dim along which vectors run; its rank if none does
  int lanes = 1;          // of the vectors
  // On a GPU: workgroups share the vector dim, each a vector of it.
  bool shares_columns = false;
  // Workgroups share the updates, none of which has another's place, each so many. 0: they do not.
  int64_t shared_updates = 0;
  // Workgroups share the first addressed dim in so many ranges. Each reads all updates, and skips those of
  // other ranges.
  int64_t ranges = 1;
  // On a GPU: updates per turn of the loop over all, because some drivers end an invocation's loops after
  // 65,535 turns.
  int64_t updates_per_turn = 1;
};

}  // namespace quernel::schedule
