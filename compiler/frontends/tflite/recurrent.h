// Recurrent layers of real values: cells, and their walk over time. States are variables of the model.
#pragma once

#include <functional>
#include <vector>

#include "frontends/tflite/activation.h"
#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

// The states after a step, the first of which is also its result.
using CellStep = std::function<std::vector<ValueId>(ValueId x, const std::vector<ValueId>& states)>;

struct SequenceResult {
  ValueId results = kNoValue;  // [time, batch, …]
  std::vector<ValueId> states;
};
// Runs a cell over the first dim of x, [time, batch, …], backwards if `reverse`.
SequenceResult run_over_time(NodeImport& n, ValueId x, std::vector<ValueId> states, bool reverse,
                             const CellStep& step);

// x times the transpose of weights: [batch, k] x [rows, k].
ValueId multiply_rows(ImportedNode& n, ValueId x, ValueId weights, std::optional<DType> accumulator);

// Operand i as real values, or kNoValue where it is left out.
inline ValueId real_or_none(NodeImport& n, int i) { return n.has(i) ? n.real(i) : kNoValue; }
// The value of a state, an operand that is a variable, and its next value.
ValueId read_state(NodeImport& n, int operand);
void write_state(NodeImport& n, int operand, ValueId value);

}  // namespace quernel::tflite_import
