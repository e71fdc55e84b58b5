// The rules behind simplify_algebra's table. A rule returns the value that replaces the matched node, or
// kNoValue.
#pragma once

#include <string_view>
#include <vector>

#include "graph/build.h"

namespace quernel {

struct SimplifyMatch {
  GraphBuilder& build;
  OpKind op;
  const std::vector<ValueId>& inputs;  // in build.graph()
  const Attributes& attributes;
  const TensorType& type;  // of the result
};

struct SimplifyRule {
  std::string_view name;
  std::string_view example;  // before -> after
  ValueId (*apply)(const SimplifyMatch&);
};

// simplify_with_constants.cpp: a constant operand.
ValueId constant_to_the_right(const SimplifyMatch& m);
ValueId neutral_operand(const SimplifyMatch& m);
ValueId absorbing_operand(const SimplifyMatch& m);
ValueId subtract_constant(const SimplifyMatch& m);
ValueId divide_by_power_of_two(const SimplifyMatch& m);
ValueId multiply_by_minus_one(const SimplifyMatch& m);
ValueId join_constants(const SimplifyMatch& m);
ValueId constant_power(const SimplifyMatch& m);
ValueId reciprocal(const SimplifyMatch& m);
ValueId infinite_clamp(const SimplifyMatch& m);

// simplify_structure.cpp: how operands were made.
ValueId equal_operands(const SimplifyMatch& m);
ValueId unary_pair(const SimplifyMatch& m);
ValueId negated_comparison(const SimplifyMatch& m);
ValueId known_condition(const SimplifyMatch& m);
ValueId redundant_cast(const SimplifyMatch& m);
ValueId reduce_of_one(const SimplifyMatch& m);
ValueId expand_after(const SimplifyMatch& m);

}  // namespace quernel
