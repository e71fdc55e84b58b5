// The steps that fill a schedule, in the order in which pipeline/pass_tables.cpp lists them. Each requires what
// the ones before it have established.
#pragma once

#include <functional>

#include "schedule/packings.h"
#include "schedule/schedule.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::schedule {

// Every output gets a value that a kernel or body writes for it alone. So does what a body reads and carries,
// and what a custom op reads. Every multi-result node gets all of its results.
Status give_values_storage(Schedule& schedule);

// Fusion: decides which nodes share a kernel and which values are stored.
void form_groups(Schedule& schedule, const Target& target);

// Consecutive groups that work on the same rows become one kernel. Requires that only its own later stages read
// what the earlier ones compute.
//   reduce_max, map exp, reduce_sum, map div -> rows
// Rows that are longer than a GPU's workgroup holds keep the groups that they are made of as parts.
void form_rows(Schedule& schedule, const Target& target);

// Softmax(q k) v becomes one kernel that stores no matrix of scores:
//   contract(q, k), rows, contract(that, v) -> attention
// A GPU's workgroup that holds only a part of a row of scores walks parts of the keys and rescales its sums
// whenever the row's largest score changes (M. Milakov, N. Gimelshein, "Online normalizer calculation for
// softmax", 2018).
void form_attention(Schedule& schedule, const Target& target);

// Rows that still have parts become these groups again, or shorter chains of them.
void split_long_rows(Schedule& schedule, const Target& target);

// Gives stored values buffers and strides, writes cat operands in place where possible, plans contractions, and
// packs constants.
Status assign_storage(Schedule& schedule, const Target& target, Packings& packings);

// The next value of a state is written over the current one. Requires that everything that reads the current
// one has run by then, or reads just the element that it writes. Otherwise a copy, the last group of all,
// writes it.
Status place_states(Schedule& schedule);

// Fills a body's schedule; see schedule_bodies.
using ScheduleBody = std::function<Status(Schedule& body, const Target& target, Packings& packings)>;
// Makes the schedules of all bodies. Their inputs and outputs lie where this schedule has put them.
Status schedule_bodies(Schedule& schedule, const Target& target, Packings& packings,
                       const ScheduleBody& schedule_body);

// Makes the items, with analysis and hazards, live ranges and arena offsets.
Status plan_memory(Schedule& schedule);

}  // namespace quernel::schedule
