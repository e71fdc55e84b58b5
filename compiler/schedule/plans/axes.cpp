#include "schedule/plans/axes.h"

#include <algorithm>
#include <cmath>

namespace quernel::schedule {

namespace {
int digits(const IndexExpr& e) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
    case IndexExpr::Kind::kAxis:
      return 0;
    case IndexExpr::Kind::kAdd:
      return digits(e.lhs()) + digits(e.rhs());
    case IndexExpr::Kind::kMul:
      return digits(e.lhs());
    default:
      return 1 + digits(e.lhs());
  }
}
int digits(const std::vector<IndexExpr>& es) {
  int n = 0;
  for (const IndexExpr& e : es) n += digits(e);
  return n;
}

// A constant that the axis is divided by somewhere in `e`, not the extent, of which it is a divisor.
std::optional<int64_t> digit_of(const IndexExpr& e, int axis, int64_t extent, int64_t least) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
    case IndexExpr::Kind::kAxis:
      return std::nullopt;
    case IndexExpr::Kind::kAdd: {
      std::optional<int64_t> left = digit_of(e.lhs(), axis, extent, least);
      return left ? left : digit_of(e.rhs(), axis, extent, least);
    }
    case IndexExpr::Kind::kMul:
      return digit_of(e.lhs(), axis, extent, least);
    default:
      break;
  }
  if (e.lhs().kind() != IndexExpr::Kind::kAxis || e.lhs().axis_index() != axis || !e.value().is_const())
    return digit_of(e.lhs(), axis, extent, least);
  int64_t m = e.value().value();
  return m >= least && m < extent && extent % m == 0 ? std::optional(m) : std::nullopt;
}
}  // namespace

Shape split_axes(Shape extents, std::vector<std::vector<IndexExpr>>& indices, int64_t least,
                 std::vector<IndexExpr> accesses, const AccessProbe& probe) {
  int cost = digits(accesses);
  bool refused = false;  // the last trial
  for (size_t i = 0; i < extents.size() && cost > 0; ++i) {
    if (!extents[i].is_const()) continue;
    std::optional<int64_t> inner;
    for (size_t a = 0; a < accesses.size() && !inner; ++a)
      inner = digit_of(accesses[a], static_cast<int>(i), extents[i].value(), least);
    if (!inner) continue;
    // Axis i becomes i and i+1.
    Shape trial = extents;
    trial[i] = extents[i].value() / *inner;
    trial.insert(trial.begin() + static_cast<std::ptrdiff_t>(i) + 1, Dim(*inner));
    std::vector<IndexExpr> renamed;
    for (size_t k = 0; k < extents.size(); ++k)
      renamed.push_back(IndexExpr::axis(static_cast<int>(k > i ? k + 1 : k)));
    renamed[i] = renamed[i] * *inner + IndexExpr::axis(static_cast<int>(i) + 1);
    std::vector<std::vector<IndexExpr>> rewritten = indices;
    for (std::vector<IndexExpr>& list : rewritten)
      for (IndexExpr& e : list) e = simplify(substitute(e, renamed), trial);
    std::vector<IndexExpr> trial_accesses = probe(rewritten, trial);
    int trial_cost = digits(trial_accesses);
    refused = trial_cost >= cost;
    if (refused) continue;
    cost = trial_cost;
    extents = std::move(trial);
    indices = std::move(rewritten);
    accesses = std::move(trial_accesses);
  }
  if (refused) probe(indices, extents);
  return extents;
}

Shape merge_axes(Shape extents, const std::vector<int>& classes, std::vector<std::vector<IndexExpr>>& indices,
                 std::vector<int>& merged_classes, const AccessProbe& probe) {
  merged_classes = classes;
  auto is_one = [](const Dim& d) { return d == Dim(1); };
  if (std::find(extents.begin(), extents.end(), Dim(0)) != extents.end()) return extents;
  int cost = digits(probe(indices, extents));
  for (size_t i = extents.size(); i-- > 1;) {
    if (merged_classes[i - 1] != merged_classes[i] && !is_one(extents[i]) && !is_one(extents[i - 1]))
      continue;
    // Axis i-1 and i become one at i-1.
    Shape trial = extents;
    trial[i - 1] = trial[i - 1] * trial[i];
    trial.erase(trial.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<IndexExpr> renamed;
    for (size_t k = 0; k < extents.size(); ++k) {
      IndexExpr merged = IndexExpr::axis(static_cast<int>(i) - 1);
      if (k == i - 1)
        renamed.push_back(floordiv(merged, extents[i]));
      else if (k == i)
        renamed.push_back(is_one(extents[i - 1]) ? merged : floormod(merged, extents[i]));
      else
        renamed.push_back(IndexExpr::axis(static_cast<int>(k > i ? k - 1 : k)));
    }
    std::vector<std::vector<IndexExpr>> rewritten = indices;
    for (std::vector<IndexExpr>& list : rewritten)
      for (IndexExpr& e : list) e = simplify(substitute(e, renamed), trial);
    int trial_cost = digits(probe(rewritten, trial));
    if (trial_cost > cost) continue;
    cost = trial_cost;
    int kept = is_one(extents[i - 1]) ? merged_classes[i] : merged_classes[i - 1];
    extents = std::move(trial);
    indices = std::move(rewritten);
    merged_classes.erase(merged_classes.begin() + static_cast<std::ptrdiff_t>(i));
    merged_classes[i - 1] = kept;
  }
  return extents;
}

std::optional<Dim> stride_along(const IndexExpr& access, int axis, int axes) {
  if (!uses_axis(access, axis)) return Dim(0);
  std::optional<AffineForm> form = as_affine(access, axes);
  if (form) return form->coefficients[static_cast<size_t>(axis)];
  // Digits of other axes do not matter: split the sum and look at the terms that use this axis.
  if (access.kind() == IndexExpr::Kind::kAdd) {
    std::optional<Dim> a = stride_along(access.lhs(), axis, axes), b = stride_along(access.rhs(), axis, axes);
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  return std::nullopt;
}

bool is_contiguous(const IndexExpr& access, int axis, int axes) {
  std::optional<Dim> stride = stride_along(access, axis, axes);
  return stride && (*stride == Dim(0) || *stride == Dim(1));
}

double vector_speed(const std::vector<IndexExpr>& accesses, const Shape& extents, int axis, int lanes) {
  constexpr double kStrided = 0.12;  // of an access lane by lane
  const double n = static_cast<double>(std::max<int64_t>(extents[axis].estimate(), 1));
  const double filled = n / (std::ceil(n / lanes) * lanes);
  double sum = 0;
  for (const IndexExpr& access : accesses)
    sum += is_contiguous(access, axis, static_cast<int>(extents.size())) ? 1.0 : kStrided;
  return filled * sum / std::max<double>(1, static_cast<double>(accesses.size()));
}

}  // namespace quernel::schedule
