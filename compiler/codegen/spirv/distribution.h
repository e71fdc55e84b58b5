// How one kernel is spread over the invocations of a workgroup. Lane l of every vector is invocation l's;
// scalars are computed by all invocations alike, so that control flow is the same for all of them.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "loop/ir.h"

namespace quernel::codegen {

// Where a buffer that a kernel allocates lives.
enum class Placement : uint8_t {
  kReplicated,   // every invocation has all of it: only scalars are stored
  kDistributed,  // every invocation has its lane of each vector: accessed in whole vectors, at constant
                 // places
  kShared,       // memory of the workgroup
};

struct Distribution {
  int invocations = 1;  // the most lanes of any vector
  std::unordered_map<const loop::BufferNode*, Placement> placements;
  // Of kDistributed buffers: the lanes of their vectors.
  std::unordered_map<const loop::BufferNode*, int> lanes;
  // Buffers through which one invocation may read, or overwrite, what another wrote: accesses to them are
  // ordered by barriers.
  std::unordered_set<const loop::BufferNode*> exchanged;
};

Distribution distribute(const loop::Kernel& kernel);

// The vector [n * lanes, (n + 1) * lanes) of a buffer, when `index` is that for a constant n.
bool is_aligned_vector(const loop::Expr& index, int64_t* n);

}  // namespace quernel::codegen
