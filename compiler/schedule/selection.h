// Argsorts that need only the first elements of their lines: a heap of known size finds them.
#pragma once

#include "graph/ir.h"
#include "targets/target.h"

namespace quernel::schedule {

// Returns whether an argsort finds the first elements of its lines by a heap. Bare-metal targets use a heap
// only for lines of known length with one-word elements, and only if it takes no more memory than a merge
// sort.
bool selects_first(const Graph& graph, const Node& argsort, const Target& target);
// Returns the number of i64 per element of that heap: 1 if key and position fit in one, else 2.
int selection_words(const Graph& graph, const Node& argsort);
// Returns the elements of the scratch buffer per line: those of a binary tree that holds `kept`.
int64_t selection_slots(int64_t kept);

}  // namespace quernel::schedule
