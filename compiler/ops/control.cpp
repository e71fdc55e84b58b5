// Loops, branches and nodes of the companion CPU: their operands are their bodies' inputs. What they
// compute is read from a token by result nodes, whose types the verifier checks.
#include "graph/control.h"

#include "ops/families.h"

namespace quernel::ops {

Expected<TensorType> infer_control(OpKind op, const Types& inputs, const Attributes& attributes) {
  if (!attributes.control) return internal_error("expected a body");
  const Control& control = *attributes.control;
  bool loop = op == OpKind::k_loop;
  size_t bodies = op == OpKind::k_branch ? 2 : 1;
  if (control.bodies.size() != bodies)
    return internal_error(bodies == 1 ? "expected one body" : "expected two bodies");
  if (op == OpKind::k_on_companion) {
    if (control.count || control.condition || control.carried != 0)
      return internal_error("expected neither count, condition nor carried values");
  } else if (loop ? !control.count && !control.condition : !control.condition)
    return invalid_input(loop ? "expected a count or a condition" : "expected a condition");
  for (const Graph& body : control.bodies) {
    if (body.inputs.size() != inputs.size())
      return invalid_input("expected a body of " + std::to_string(inputs.size()) + " inputs, found " +
                           std::to_string(body.inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i)
      if (body.type(body.inputs[i]) != inputs[i])
        return invalid_input("expected operand " + std::to_string(i) + " of type " +
                             to_string(body.type(body.inputs[i])) + " as in the body, found " +
                             to_string(inputs[i]));
  }
  const Graph& body = control.bodies[0];
  if (op == OpKind::k_on_companion) return token_type();
  if (!loop) {
    const Graph& other = control.bodies[1];
    if (body.outputs.size() != other.outputs.size())
      return invalid_input("expected branches of equally many outputs");
    for (size_t i = 0; i < body.outputs.size(); ++i)
      if (body.type(body.outputs[i].value) != other.type(other.outputs[i].value))
        return invalid_input("expected output " + std::to_string(i) +
                             " of one type in both branches, found " +
                             to_string(body.type(body.outputs[i].value)) + " and " +
                             to_string(other.type(other.outputs[i].value)));
    return token_type();
  }
  const Symbol* symbol = body.find_symbol(control.symbol);
  if (!symbol || !symbol->runtime || symbol->min > 0)
    return invalid_input("expected a symbol declared as runtime that may be 0, found '" + control.symbol +
                         "'");
  size_t carried = static_cast<size_t>(control.carried);
  if (control.carried < 0 || carried > inputs.size() || carried > body.outputs.size())
    return invalid_input("expected at most " + std::to_string(std::min(inputs.size(), body.outputs.size())) +
                         " carried values, found " + std::to_string(control.carried));
  for (size_t i = 0; i < carried; ++i)
    if (body.type(body.outputs[i].value) != inputs[i])
      return invalid_input("expected carried value " + std::to_string(i) + " to stay of type " +
                           to_string(inputs[i]) + ", found " + to_string(body.type(body.outputs[i].value)));
  for (size_t i = carried; i < body.outputs.size(); ++i)
    if (const TensorType& type = body.type(body.outputs[i].value); !fills_bytes(type))
      return invalid_input("expected a scan output of whole bytes, found " + to_string(type) +
                           "; cast it to i8 or u8 in the body");
  return token_type();
}

Expected<TensorType> infer_result(OpKind, const Types& inputs, const Attributes& attributes) {
  if (inputs[0] != token_type() || attributes.ints.size() != 1 || attributes.ints[0] < 0)
    return invalid_input("expected the token of a loop, branch or custom op and the number of a result");
  return TensorType{attributes.dtype, attributes.shape};
}

}  // namespace quernel::ops
