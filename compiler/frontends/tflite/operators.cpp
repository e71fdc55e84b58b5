#include "frontends/tflite/operators.h"

#include <algorithm>

namespace quernel::tflite_import {
namespace {

const Operator kOperators[] = {
#define QUERNEL_TFLITE(name, min_inputs, max_inputs, function) \
  {tflite::BuiltinOperator::name, {}, min_inputs, max_inputs, import_##function},
#define QUERNEL_TFLITE_CUSTOM(name, min_inputs, max_inputs, function) \
  {tflite::BuiltinOperator::CUSTOM, name, min_inputs, max_inputs, import_##function},
#include "frontends/tflite/operators.def"
};

// Custom operators that stand for what a delegate has compiled for its own device.
bool is_delegate(const std::string& name) {
  return name.starts_with("TfLite") || name == "edgetpu-custom-op" || name == "ethos-u";
}

}  // namespace

const Operator* find_operator(tflite::BuiltinOperator kind, std::string_view name) {
  bool custom = kind == tflite::BuiltinOperator::CUSTOM;
  const Operator* end = std::end(kOperators);
  const Operator* found = std::find_if(std::begin(kOperators), end, [&](const Operator& op) {
    return op.kind == kind && (!custom || op.custom == name);
  });
  return found == end ? nullptr : found;
}

Diagnostic why_unsupported(tflite::BuiltinOperator kind, const std::string& name, const Location& place) {
  if (kind == tflite::BuiltinOperator::DELEGATE ||
      (kind == tflite::BuiltinOperator::CUSTOM && is_delegate(name)))
    return unsupported(
        name + " is a part of the model that a delegate has compiled for its own device, not an operator",
        place, "give the model as it was before it was compiled for the delegate");
  if (kind != tflite::BuiltinOperator::CUSTOM)
    return unsupported("operator " + name + " is not supported", place,
                       "replace it by supported operators (`quernel check` lists all that are missing)");
  if (name.starts_with("Flex"))
    return unsupported(
        "operator " + name.substr(4) + " of TensorFlow is not supported", place,
        "convert the model with built-in operators only, or describe '" + name + "' with --custom-op");
  return unsupported("custom operator " + name + " is not supported", place,
                     "describe it with --custom-op, or convert the model with built-in operators only");
}

}  // namespace quernel::tflite_import
