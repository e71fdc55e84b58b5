// Models that stay valid, mostly: what reaches the passes behind the importer.
#pragma once

#include <vector>

#include "random_mutation.h"

namespace quernel::onnx_test {

// Changes the model as one that its author could have exported: another size or a free one in place of every
// dim of some size, floats of another width, a model of `others` that computes on with its results, or
// operands in another order. Types of outputs that may have changed are dropped.
void vary(onnx::ModelProto& model, const std::vector<onnx::ModelProto>& others, Random& random);

// An Einsum of one to three operands whose letters are random; it may repeat letters within an operand, sum
// letters that only one has, and reorder the others.
onnx::ModelProto random_einsum(Random& random);

}  // namespace quernel::onnx_test
