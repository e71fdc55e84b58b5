#include "frontends/onnx/positions.h"

namespace quernel::onnx_import {

ValueId positions(NodeImport& n, DType dtype, const Dim& count, int trailing) {
  Shape shape(static_cast<size_t>(trailing) + 1, Dim(1));
  shape[0] = count;
  return n.build.reshape(n.build.cast(n.iota(DType::kI64, count), dtype), shape);
}

}  // namespace quernel::onnx_import
