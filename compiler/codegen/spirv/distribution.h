// Distributes one kernel over the invocations of a workgroup. Invocation l computes lane l of every vector.
// All invocations compute scalars alike, so that they all have the same control flow.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "loop/ir.h"

namespace quernel::codegen {

// The memory of a buffer that a kernel allocates.
enum class Placement : uint8_t {
  kReplicated,  // every invocation has all of it: only scalars are stored
  // Every invocation has its lane of each vector: accessed in whole vectors, at constant indices.
  kDistributed,
  kShared,  // shared memory
};

struct Distribution {
  int invocations = 1;  // the most lanes of any vector
  std::unordered_map<const loop::BufferNode*, Placement> placements;
  // For kDistributed buffers: the lanes of their vectors.
  std::unordered_map<const loop::BufferNode*, int> lanes;
  // Buffers through which an invocation may read, or overwrite, what another one wrote. Barriers order
  // accesses to them.
  std::unordered_set<const loop::BufferNode*> exchanged;
};

Distribution distribute(const loop::Kernel& kernel);

// Returns whether `index` is the vector [n * lanes, (n + 1) * lanes) of a buffer for a constant n.
bool is_aligned_vector(const loop::Expr& index, int64_t* n);

}  // namespace quernel::codegen
