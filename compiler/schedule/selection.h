// Argsorts that need only the first elements of their lines: a heap of known size finds them.
#pragma once

#include "graph/ir.h"
#include "targets/target.h"

namespace quernel::schedule {

// Whether an argsort finds the first elements of its lines by a heap. Bare-metal targets use one only for lines
// of known length whose elements fit one word, and only where it takes no more memory than a merge sort.
bool selects_first(const Graph& graph, const Node& argsort, const Target& target);
// How many i64 an element of that heap takes: 1 where key and position fit in one, else 2.
int selection_words(const Graph& graph, const Node& argsort);
// Elements of the scratch buffer for each line: those of a binary tree that holds `kept`.
int64_t selection_slots(int64_t kept);

}  // namespace quernel::schedule
