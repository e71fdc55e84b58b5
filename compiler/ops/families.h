// Shape and dtype rules of the op families; one function per family, defined in the file of that name.
#pragma once

#include "graph/ir.h"

namespace quernel::ops {

using Types = std::vector<TensorType>;
Expected<TensorType> infer_unary(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_binary(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_ternary(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_convert(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_quantized(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_quantized_rows(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_source(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_movement(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_cat(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_reduce(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_scan(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_sort(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_contract(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_winograd(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_gather(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_scatter(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_control(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_custom(OpKind op, const Types& inputs, const Attributes& attributes);
Expected<TensorType> infer_result(OpKind op, const Types& inputs, const Attributes& attributes);

}  // namespace quernel::ops
