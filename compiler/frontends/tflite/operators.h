// The table of TensorFlow Lite operators (operators.def).
#pragma once

#include <string_view>

#include "frontends/tflite/node_import.h"

namespace quernel::tflite_import {

struct Operator {
  tflite::BuiltinOperator kind;  // CUSTOM: `custom` is the name
  std::string_view custom;
  int min_inputs = 1;  // that must be present
  int max_inputs = 1;  // -1: any number
  Status (*import)(NodeImport&) = nullptr;
};

// Null where the operator is not in the table. `name`: of a custom operator.
const Operator* find_operator(tflite::BuiltinOperator kind, std::string_view name);
// Why an operator that is not in the table cannot be imported, and what to do.
Diagnostic why_unsupported(tflite::BuiltinOperator kind, const std::string& name, const Location& place);

#define QUERNEL_TFLITE(name, min_inputs, max_inputs, function) Status import_##function(NodeImport& n);
#define QUERNEL_TFLITE_CUSTOM(name, min_inputs, max_inputs, function) Status import_##function(NodeImport& n);
#include "frontends/tflite/operators.def"

}  // namespace quernel::tflite_import
