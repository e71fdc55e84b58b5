// Sizes and places of stored values.
#pragma once

#include "schedule/schedule.h"

namespace quernel::schedule {

// Bytes of `count` elements.
Dim byte_size(DType dtype, const Dim& count);
// Elements from the first to one past the last that a stored value spans.
Dim span(const Shape& dims, const Shape& strides);

// Rounds bytes up to the alignment of the buffers of a workspace.
Dim aligned(const Dim& bytes);

// Whether the node is a result that its loop carries. Such a value has two slots: iteration i reads slot
// i mod 2 and writes the other one; the initial value is written to slot 0.
bool is_carried(const Graph& graph, const Node& node);
// Elements from one slot of a carried value to the other.
Dim slot_elements(const TensorType& type);

// The buffer over which `buffer` is written in place, perhaps through others.
int root_buffer(const Schedule& schedule, int buffer);
// Whether two stored values live at the same place.
bool same_place(const Schedule& schedule, ValueId a, ValueId b);

// Bytes of the workspace that hold something while an item runs, per item. No plan can take less.
std::vector<int64_t> live_bytes(const Schedule& schedule);

}  // namespace quernel::schedule
