// Lowering: one schedule item to one loop-IR kernel, with axis kinds on its loops (vector, unrolled, serial,
// reduction).
#pragma once

#include "loop/ir.h"
#include "schedule/schedule.h"

namespace quernel::lower {

loop::Kernel lower_item(const schedule::Schedule& schedule, const schedule::Item& item, const Target& target);

}  // namespace quernel::lower
