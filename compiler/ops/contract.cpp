// The contraction: out[map_out] += a[map_a] * b[map_b]; matmul, einsum and convolution alike.
#include <algorithm>
#include <utility>

#include "ops/families.h"

namespace quernel::ops {
namespace {

bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

Status check_map(const char* operand, const std::vector<IndexExpr>& map, const Shape& shape,
                 const Shape& extents) {
  if (map.size() != shape.size())
    return invalid_input(std::string("expected one expression per dim of operand ") + operand + " " +
                         to_string(shape) + ", found " + std::to_string(map.size()));
  for (size_t i = 0; i < map.size(); ++i) {
    std::optional<AffineForm> form = as_affine(map[i], static_cast<int>(extents.size()));
    if (!form)
      return invalid_input(std::string("expected affine accesses of operand ") + operand + ", found " +
                           to_string(map[i]));
    IndexRange r = range_of(map[i], extents);
    bool empty = std::find(extents.begin(), extents.end(), Dim(0)) != extents.end();
    if (!empty && (always_lt(r.lo, 0) || always_le(shape[i], r.hi)))
      return invalid_input(std::string("expected accesses of operand ") + operand + " within dim " +
                           std::to_string(i) + " of " + to_string(shape) + ", found " + to_string(r.lo) +
                           ".." + to_string(r.hi));
  }
  return {};
}

}  // namespace

Expected<TensorType> infer_contract(OpKind, const Types& inputs, const Attributes& attributes) {
  const Contraction& c = attributes.contraction;
  DType dtype = inputs[0].dtype, other = inputs[1].dtype;
  if (is_half(dtype) && other == DType::kF32) std::swap(dtype, other);
  if (dtype != other && !(is_byte(dtype) && is_byte(other)) && !(dtype == DType::kF32 && is_half(other)))
    return invalid_input("expected operands of one dtype, of i8 and u8, or of f32 and f16 or bf16, found " +
                         to_string(inputs[0]) + " and " + to_string(inputs[1]));
  if (dtype >= DType::kBool) return unsupported("expected numbers, found " + to_string(inputs[0]));
  if (is_float(c.accumulator) != is_float(dtype) || c.accumulator >= DType::kBool)
    return invalid_input("expected an accumulator " + std::string(is_float(dtype) ? "float" : "integer") +
                         " for " + to_string(inputs[0]) + ", found " + std::string(to_string(c.accumulator)));
  if (c.winograd != 0 && c.winograd != 2 && c.winograd != 4)
    return invalid_input("expected winograd tiles of side 2 or 4, found " + std::to_string(c.winograd));
  Shape extents;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    if (always_lt(c.axes[i].extent, 0))
      return invalid_input("expected axis extents of at least 0, found " + to_string(c.axes[i].extent));
    if (i > 0 && c.axes[i - 1].reduction && !c.axes[i].reduction)
      return invalid_input("expected output axes before reduction axes");
    extents.push_back(c.axes[i].extent);
  }
  QUERNEL_CHECK(check_map("a", c.a, inputs[0].shape, extents));
  QUERNEL_CHECK(check_map("b", c.b, inputs[1].shape, extents));
  // Output: every output axis in exactly one dim; per dim a mixed radix over its axes, so that it is covered
  // exactly once.
  bool keeps_sum = c.unrounded || (c.accumulator == DType::kI32 && !is_float(dtype));
  TensorType result{keeps_sum ? c.accumulator : dtype, {}};
  std::vector<int> used(c.axes.size(), 0);
  for (const IndexExpr& e : c.out) {
    std::optional<AffineForm> form = as_affine(e, static_cast<int>(c.axes.size()));
    if (!form || !(form->offset == Dim(0)))
      return invalid_input("expected linear output accesses, found " + to_string(e));
    std::vector<std::pair<Dim, Dim>> digits;  // coefficient, extent
    for (size_t i = 0; i < c.axes.size(); ++i) {
      if (form->coefficients[i] == Dim(0)) continue;
      if (c.axes[i].reduction || used[i]++)
        return invalid_input("expected each output axis in one dim of the output, found " + to_string(e));
      digits.emplace_back(form->coefficients[i], c.axes[i].extent);
    }
    Dim radix = 1;
    bool empty = false;
    while (!digits.empty()) {
      auto next = std::find_if(digits.begin(), digits.end(), [&](const auto& digit) {
        return digit.first == radix || always_le(digit.second, 1);
      });
      if (next == digits.end())
        return invalid_input("expected an output access that covers its dim once, found " + to_string(e));
      if (next->second == Dim(0))
        empty = true;
      else
        radix = radix * next->second;
      digits.erase(next);
    }
    result.shape.push_back(empty ? Dim(0) : radix);
  }
  for (size_t i = 0; i < c.axes.size(); ++i)
    if (!c.axes[i].reduction && !used[i] && !(c.axes[i].extent == Dim(1)))
      return invalid_input("expected output axis " + c.axes[i].name + " in the output map");
  return result;
}

}  // namespace quernel::ops
