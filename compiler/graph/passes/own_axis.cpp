#include "graph/passes/own_axis.h"

#include <algorithm>

namespace quernel {
namespace {

bool mentions(const std::vector<IndexExpr>& access, int axis) {
  return std::any_of(access.begin(), access.end(), [&](const IndexExpr& e) { return uses_axis(e, axis); });
}

// The only dim of `access` that mentions the axis, where it is that axis and nothing else.
std::optional<size_t> dim_of(const std::vector<IndexExpr>& access, int axis, int axes) {
  std::optional<size_t> found;
  for (size_t d = 0; d < access.size(); ++d) {
    if (!uses_axis(access[d], axis)) continue;
    std::optional<AffineForm> form = as_affine(access[d], axes);
    if (found || !form || form->offset != Dim(0)) return std::nullopt;
    for (int i = 0; i < axes; ++i)
      if (form->coefficients[i] != Dim(i == axis ? 1 : 0)) return std::nullopt;
    found = d;
  }
  return found;
}

}  // namespace

std::optional<OwnAxis> find_own_axis(const Contraction& c, size_t operand) {
  const std::vector<IndexExpr>& own = operand == 0 ? c.a : c.b;
  const std::vector<IndexExpr>& other = operand == 0 ? c.b : c.a;
  const int axes = static_cast<int>(c.axes.size());
  for (int axis = 0; axis < axes; ++axis) {
    if (c.axes[axis].reduction || !c.axes[axis].extent.is_const() || mentions(other, axis)) continue;
    const std::optional<size_t> in = dim_of(own, axis, axes), out = dim_of(c.out, axis, axes);
    if (in && out) return OwnAxis{axis, *in, *out};
  }
  return std::nullopt;
}

}  // namespace quernel
