#include "frontends/shared/contraction.h"

#include <algorithm>

namespace quernel {

IndexExpr ContractionBuilder::add(std::string name, const Dim& extent, bool reduction) {
  if (extent == Dim(1)) return 0;
  axes_.push_back({std::move(name), extent, reduction});
  return IndexExpr::axis(static_cast<int>(axes_.size()) - 1);
}

ValueId ContractionBuilder::emit(ImportedNode& n, ValueId a, std::vector<IndexExpr> index_a, ValueId b,
                                 std::vector<IndexExpr> index_b, std::vector<IndexExpr> index_out,
                                 std::optional<DType> accumulator) {
  DType dtype = n.dtype(a);
  int64_t count = 1;
  for (const auto& axis : axes_)
    if (!axis.reduction && axis.extent.is_const() &&
        (axis.extent.value() < 0 || __builtin_mul_overflow(count, axis.extent.value(), &count)))
      return n.build.fail(n.refuse("the result has more elements than fit 63 bits"));
  if (std::any_of(axes_.begin(), axes_.end(), [](const auto& axis) { return axis.extent == Dim(0); })) {
    Shape shape;
    for (const IndexExpr& e : index_out) {
      Dim size = 1;
      for (size_t i = 0; i < axes_.size(); ++i)
        if (uses_axis(e, static_cast<int>(i))) size *= axes_[i].extent;
      shape.push_back(size);
    }
    return n.full(accumulator.value_or(dtype), shape, 0);
  }
  if (dtype == DType::kBool || n.dtype(b) == DType::kBool)
    return n.build.fail(n.invalid("expected numbers, found bool"));
  Contraction c;
  c.axes = axes_;
  c.a = std::move(index_a);
  c.b = std::move(index_b);
  c.out = std::move(index_out);
  // Integers keep their dtype, as the source operators wrap; i8 and u8 would widen.
  c.accumulator = accumulator.value_or(is_float(dtype) ? default_accumulator(dtype) : dtype);
  return n.build.contract(a, b, std::move(c));
}

}  // namespace quernel
