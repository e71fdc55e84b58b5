// The table of TensorFlow Lite operators (operators.def).
#pragma once

#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

struct Operator {
  tflite::BuiltinOperator kind;
  int min_inputs = 1;  // that must be present
  int max_inputs = 1;  // -1: any number
  Status (*import)(NodeImport&) = nullptr;
};

// Null where the operator is not in the table.
const Operator* find_operator(tflite::BuiltinOperator kind);
// Why an operator that is not in the table cannot be imported, and what to do.
Diagnostic why_unsupported(const std::string& name, bool custom, const Location& place);

#define QUERNEL_TFLITE(name, min_inputs, max_inputs, function) Status import_##function(NodeImport& n);
#include "frontends/tflite/operators.def"

}  // namespace quernel::tflite_import
