// The op table: every core op with its family's rules.
#include "ops/families.h"

namespace quernel {
namespace {

struct Arity {
  int min, max;
};
constexpr int kMany = 1 << 16;
constexpr Arity arity_of(std::string_view family) {
  if (family == "source") return {0, 0};
  if (family == "binary" || family == "contract" || family == "gather") return {2, 2};
  if (family == "quantized") return {2, 3};
  if (family == "quantized_rows") return {3, 5};
  if (family == "ternary" || family == "scatter") return {3, 3};
  if (family == "cat") return {1, kMany};
  if (family == "control" || family == "custom") return {0, kMany};
  return {1, 1};
}

const OpInfo kTable[] = {
#define QUERNEL_OP(name, family) \
  {#name, #family, arity_of(#family).min, arity_of(#family).max, ops::infer_##family},
#include "ops/ops.def"
};

}  // namespace

const OpInfo& op_info(OpKind op) { return kTable[static_cast<int>(op)]; }

}  // namespace quernel
