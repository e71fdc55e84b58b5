// Custom ops: what they compute is read from a token by result nodes, as from loops and branches.
#include "graph/control.h"
#include "ops/families.h"

namespace quernel::ops {

Expected<TensorType> infer_custom(OpKind, const Types&, const Attributes& attributes) {
  if (!attributes.custom) return internal_error("expected a custom op");
  if (attributes.custom->name.empty()) return invalid_input("expected a name");
  if (attributes.custom->results.empty())
    return invalid_input("'" + attributes.custom->name + "': expected at least one result");
  return token_type();
}

}  // namespace quernel::ops
