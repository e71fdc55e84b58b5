// Sizes and places of stored values.
#pragma once

#include "schedule/schedule.h"

namespace quernel::schedule {

// Returns the bytes of `count` elements.
Dim byte_size(DType dtype, const Dim& count);
// Returns the number of elements that a stored value spans, from its first to its last.
Dim span(const Shape& dims, const Shape& strides);

// Rounds bytes up to the alignment of the buffers of a workspace.
Dim aligned(const Dim& bytes);

// Returns whether the node is a result that its loop carries. Such a value has two slots: iteration i reads
// slot i mod 2 and writes the other one. The initial value is written to slot 0.
bool is_carried(const Graph& graph, const Node& node);
// Returns the elements from one slot of a carried value to the other.
Dim slot_elements(const TensorType& type);

// Returns the buffer over which `buffer` is written in place, possibly through others.
int root_buffer(const Schedule& schedule, int buffer);
// Returns whether two stored values are at the same place.
bool same_place(const Schedule& schedule, ValueId a, ValueId b);

// Returns the workspace bytes in use while an item runs, per item. No memory plan can take less.
std::vector<int64_t> live_bytes(const Schedule& schedule);

}  // namespace quernel::schedule
