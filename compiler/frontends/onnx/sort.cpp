// TopK: the positions of the first elements in sorted order, and what stands there.
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {

Status import_top_k(NodeImport& n) {
  ValueId x = n.in(0);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", -1), n.rank(x)));
  bool largest = true;
  int64_t count = 0;
  if (n.opset < 10) {
    count = n.attr_int("k", 0);
    if (n.has(1)) return n.invalid("k is an attribute before opset 10, found an input");
  } else {
    QUERNEL_TRY(count, n.int_in(1, "K"));
  }
  if (n.opset >= 11) {
    largest = n.attr_int("largest", 1) != 0;
    n.ignore_attribute("sorted");  // any order will do where it is 0
  }
  if (count < 0) return n.invalid("expected K of at least 0, found " + std::to_string(count));
  ValueId positions = n.build.argsort(x, axis, count, largest);
  Attributes along;
  along.ints = {axis};
  ValueId values = n.build.add(OpKind::k_gather_elements, {x, positions}, std::move(along));
  return n.set_outputs({values, positions});
}

}  // namespace quernel::onnx_import
