// The steps that fill a schedule, in the order of pipeline/pass_tables.cpp. Each requires what the earlier
// ones have established.
#pragma once

#include <functional>

#include "schedule/packings.h"
#include "schedule/schedule.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::schedule {

// Gives every output a separate value that a kernel or body writes. Does the same for what a body reads and
// carries, and for what a custom op reads. Gives every multi-result node all of its results.
Status give_values_storage(Schedule& schedule);

// Fusion: decides which nodes share a kernel and which values are stored.
void form_groups(Schedule& schedule, const Target& target);

// Moves the end of a chain of elementwise nodes from the group that stores its result to the one group that
// reads it, if the first group then stores narrower values:
//   group 0: contract … cast to i8, cast to i32, mul (stored); group 1: contract, add
//   -> group 0: contract … cast to i8 (stored); group 1: cast to i32, mul, contract, add
void narrow_stored_values(Schedule& schedule, const Target& target);

// Merges consecutive groups that work on the same rows into one kernel, if only its own later stages read the
// results of the earlier ones.
//   reduce_max, map exp, reduce_sum, map div -> rows
// Rows that are longer than a GPU's workgroup holds keep the original groups as parts.
void form_rows(Schedule& schedule, const Target& target);

// Merges softmax(q k) v into one kernel that stores no matrix of scores:
//   contract(q, k), rows, contract(that, v) -> attention
// A GPU's workgroup may hold only a part of a row of scores. It then processes parts of the keys and rescales
// its accumulators whenever the row's largest score changes (M. Milakov, N. Gimelshein, "Online normalizer
// calculation for softmax", 2018).
void form_attention(Schedule& schedule, const Target& target);

// Turns rows that still have parts into these groups again, or into shorter chains of them.
void split_long_rows(Schedule& schedule, const Target& target);

// Gives stored values buffers and strides, writes cat operands in place where possible, plans contractions,
// and packs constants.
Status assign_storage(Schedule& schedule, const Target& target, Packings& packings);

// Writes the next value of a state over the current one, if every reader of the current one has run by then,
// or reads just the element that it writes. Otherwise a copy, the last group of all, writes it.
Status place_states(Schedule& schedule);

// Fills a body's schedule; see schedule_bodies.
using ScheduleBody = std::function<Status(Schedule& body, const Target& target, Packings& packings)>;
// Schedules all bodies. Their inputs and outputs are where this schedule has put them.
Status schedule_bodies(Schedule& schedule, const Target& target, Packings& packings,
                       const ScheduleBody& schedule_body);

// Creates the items, with analysis and hazards, live ranges and arena offsets. Where memory is dear, results may
// lie partly over an operand (overlap.h).
Status plan_memory(Schedule& schedule, const Target& target);

// Decides how the work of each kernel is divided: loops, vectors, workgroups, and how contractions walk over their tiles
// (plans/README.md). `choices`: those of a file; may be null.
Status plan_kernels(Schedule& schedule, const Target& target, Choices* choices = nullptr);

}  // namespace quernel::schedule
