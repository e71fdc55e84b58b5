// One random fault in an ONNX model.
#pragma once

#include <random>

#include "model_builder.h"

namespace quernel::onnx_test {

using Random = std::mt19937_64;
// A number below `count`; 0 where that is 0.
inline size_t pick(Random& random, size_t count) {
  return count == 0 ? 0 : static_cast<size_t>(random() % count);
}

// Changes one thing: a node's operator, operands, outputs or attributes, an initializer, an input's type or
// the opset. The model may be valid afterwards.
void mutate_somewhere(onnx::ModelProto& model, Random& random);

}  // namespace quernel::onnx_test
