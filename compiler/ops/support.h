// What each core op does with each dtype: a table for people, which tests hold against what really compiles.
#pragma once

#include <optional>
#include <string>

#include "graph/ir.h"

namespace quernel::ops {

// Operand types and attributes of a node.
struct SampleNode {
  std::vector<TensorType> inputs;
  Attributes attributes;
};
// A small node of the op that works on the dtype; none where the op has no dtype to choose. It need not be
// one that the op's rules allow.
std::optional<SampleNode> sample_node(OpKind op, DType dtype);

enum class Support : uint8_t {
  kNative,
  kWidened,  // computed in a wider dtype and rounded to this one after every operation, or unpacked to bytes
  kRefused,  // by the op's rules, at compile time
};
// The same on every target of the device.
Support cpu_support(OpKind op, const SampleNode& sample, DType dtype);

// The table of all ops, dtypes and devices, as markdown.
std::string support_table();

}  // namespace quernel::ops
