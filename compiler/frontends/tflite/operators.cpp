#include "frontends/tflite/operators.h"

#include <algorithm>

namespace quernel::tflite_import {
namespace {

const Operator kOperators[] = {
#define QUERNEL_TFLITE(name, min_inputs, max_inputs, function) \
  {tflite::BuiltinOperator::name, min_inputs, max_inputs, import_##function},
#include "frontends/tflite/operators.def"
};

}  // namespace

const Operator* find_operator(tflite::BuiltinOperator kind) {
  const Operator* end = std::end(kOperators);
  const Operator* found =
      std::find_if(std::begin(kOperators), end, [&](const Operator& op) { return op.kind == kind; });
  return found == end ? nullptr : found;
}

Diagnostic why_unsupported(const std::string& name, bool custom, const Location& place) {
  if (custom)
    return unsupported("custom operator " + name + " is not supported", place,
                       "convert the model with built-in operators only");
  return unsupported("operator " + name + " is not supported", place,
                     "replace it by supported operators (`quernel check` lists all that are missing)");
}

}  // namespace quernel::tflite_import
