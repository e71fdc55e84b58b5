// Powers with constant exponents that a few products and square roots make: a power takes as long as fifty of
// the former. Roots are for x that cannot be negative: -infinity has powers, but no root.
#include "graph/passes/constant_operand.h"
#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

ValueId power(Rewriter& r, ValueId x, double exponent) {
  auto mul = [&](ValueId a, ValueId b) { return r.build.add(OpKind::k_mul, {a, b}); };
  auto sqrt = [&](ValueId a) { return r.build.add(OpKind::k_sqrt, {a}); };
  if (exponent == 3) return mul(mul(x, x), x);
  if (exponent == 4) return x = mul(x, x), mul(x, x);
  if (!known_non_negative(r.graph, x)) return kNoValue;
  if (exponent == 0.25) return sqrt(sqrt(x));
  if (exponent == 0.75) return x = sqrt(x), mul(x, sqrt(x));
  if (exponent == 1.5) return mul(x, sqrt(x));
  if (exponent == -0.25) return sqrt(r.build.add(OpKind::k_rsqrt, {x}));
  if (exponent == -0.75) return x = r.build.add(OpKind::k_rsqrt, {x}), mul(x, sqrt(x));
  return kNoValue;
}

}  // namespace

Expected<Graph> expand_powers(const Graph& graph) {
  return rewrite(graph, [](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_pow) return kNoValue;
    // 16-bit floats keep their one rounding.
    DType dtype = r.old.dtype(node.output);
    if (dtype != DType::kF32 && dtype != DType::kF64) return kNoValue;
    std::optional<Tensor> c = uniform_operand(r.old, node.inputs[1]);
    return c ? power(r, r(node.inputs[0]), element_as_f64(*c, 0)) : kNoValue;
  });
}

}  // namespace quernel
