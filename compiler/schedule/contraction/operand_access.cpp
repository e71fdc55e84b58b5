#include "schedule/contraction/operand_access.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/quantized.h"
#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {
namespace {

bool is_output(const Graph& graph, ValueId v) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](const Graph::Output& output) { return output.value == v; });
}

// The range of a constant's elements.
std::pair<int64_t, int64_t> range_of_elements(const Tensor& t) {
  if (t.dtype == DType::kI4) return {-8, 7};
  if (t.dtype == DType::kU4) return {0, 15};
  const bool is_signed = t.dtype == DType::kI8;
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (size_t i = 0; i < t.bytes.size(); ++i) {
    const int64_t element = is_signed ? static_cast<int8_t>(t.bytes.data()[i]) : t.bytes.data()[i];
    least = std::min(least, element), most = std::max(most, element);
    if (most > 15 || least < -8) break;  // all bits are needed
  }
  return {least, most};
}

// The dtype in which zero points are stored; nullopt: all are `middle`.
std::optional<DType> dtype_of_zeros(const Tensor* zeros, int64_t middle) {
  if (!zeros) return middle == 0 ? std::nullopt : std::optional(DType::kI8);
  bool none = true, bytes = true;
  for (int64_t i = 0; i < zeros->count(); ++i) {
    const double zero = element_as_f64(*zeros, i) - static_cast<double>(middle);
    none &= zero == 0;
    bytes &= zero >= -128 && zero <= 127 && std::floor(zero) == zero;
  }
  return none ? std::nullopt : std::optional(bytes ? DType::kI8 : DType::kF32);
}

}  // namespace

QuantizedOperand quantized_operand(const Graph& graph, ValueId v) {
  const QuantizedConstant q = *quantized_constant(graph, v);
  const auto [least, most] = range_of_elements(*q.elements);
  const bool is_signed = is_signed_integer(q.elements->dtype);
  QuantizedOperand result{.bits = 8, .middle = is_signed ? 0 : 128, .scales = q.scales->dtype};
  for (int bits : {4, 2}) {
    const int64_t half = int64_t{1} << (bits - 1), low = is_signed ? -half : 0;
    if (least >= low && most < low + 2 * half) result.bits = bits, result.middle = is_signed ? 0 : half;
  }
  result.zeros = dtype_of_zeros(q.zeros, result.middle);
  for (size_t d = 0; d < q.groups->size(); ++d)
    result.groups.push_back(q.scales->dims[d] == 1 ? 0 : (*q.groups)[d]);
  return result;
}

std::optional<RowsOfBytes> rows_of_bytes(const Graph& graph, ValueId v) {
  const Node* node = graph.def(v);
  if (!node || node->op != OpKind::k_dequantize_rows) return std::nullopt;
  std::vector<ValueId> parts = node->inputs;
  for (ValueId& part : parts) {
    const Node* from = graph.def(part);
    for (; from && from->op == OpKind::k_reshape && !is_output(graph, part); from = graph.def(part))
      part = from->inputs[0];  // in the same order
    // Inputs and outputs of a body lie where the graph around it wants them.
    if (!from || from->op == OpKind::k_constant || is_output(graph, part)) return std::nullopt;
    if (has_index_map(*from) && from->op != OpKind::k_contiguous) return std::nullopt;
  }
  const std::vector<int64_t>& numbers = node->attributes.ints;
  const int64_t row = graph.dtype(node->inputs.back()) == DType::kI32 ? graph.shape(v).back().value() : 0;
  return RowsOfBytes{.digits = {parts.begin(), parts.end() - 2},
                     .scales = parts.end()[-2],
                     .sums = parts.back(),
                     .group = numbers[0],
                     .base = numbers.size() > 1 ? numbers[1] : 0,
                     .factor = numbers.size() > 2 ? numbers[2] : 1,
                     .row = row};
}

OperandAccess resolve_operand(const Graph& graph, const Node& contract, int operand) {
  const Contraction& c = contract.attributes.contraction;
  Shape extents;
  for (const Contraction::Axis& axis : c.axes) extents.push_back(axis.extent);
  OperandAccess access{contract.inputs[operand], operand == 0 ? c.a : c.b};
  IndexMap map{access.indices, {}};
  bool empty = std::find(extents.begin(), extents.end(), Dim(0)) != extents.end();
  while (const Node* node = graph.def(access.base)) {
    if (node->op == OpKind::k_contiguous || !has_index_map(*node) || empty) break;
    if (is_output(graph, access.base)) break;  // stored itself; what it is a view of may not be
    IndexMap own = index_map_of(graph, *node);
    if (!own.guards.empty())
      access.fill = map.guards.empty() || access.fill == node->attributes.fill
                        ? node->attributes.fill
                        : std::numeric_limits<double>::quiet_NaN();
    map = compose(own, map, extents);
    access.base = node->inputs[0];
  }
  access.indices = map.indices;
  access.guards = map.guards;
  access.affine = std::all_of(map.indices.begin(), map.indices.end(), [&](const IndexExpr& e) {
    return as_affine(e, static_cast<int>(extents.size())).has_value();
  });
  return access;
}

OperandStrides operand_strides(const Graph& graph, const OperandAccess& access, const Shape& dim_strides,
                               const Dim& offset, size_t axes) {
  OperandStrides result;
  result.axis.assign(axes, 0);
  result.offset = offset;
  result.constant = is_constant_operand(graph, access.base);
  if (result.constant && !graph.constant(access.base))
    result.quantized = quantized_operand(graph, access.base);
  result.dtype = graph.dtype(access.base);
  if (std::optional<RowsOfBytes> rows = rows_of_bytes(graph, access.base))
    result.group_of_bytes = rows->group, result.row_of_bytes = rows->row,
    result.digits = static_cast<int>(rows->digits.size());
  for (size_t d = 0; d < access.indices.size(); ++d) {
    AffineForm form = *as_affine(access.indices[d], static_cast<int>(axes));
    result.offset += form.offset * dim_strides[d];
    for (size_t i = 0; i < axes; ++i) result.axis[i] += form.coefficients[i] * dim_strides[d];
  }
  result.copyable.assign(axes, 0);
  for (size_t i = 0; i < axes; ++i) {
    int dims = 0;
    bool unit = false;
    for (const IndexExpr& e : access.indices)
      if (uses_axis(e, static_cast<int>(i)))
        ++dims, unit = is_one(as_affine(e, static_cast<int>(axes))->coefficients[i]);
    result.copyable[i] = dims == 1 && unit;
  }
  result.dim.assign(axes, -1);
  result.step.assign(axes, 0);
  for (size_t d = 0; d < access.indices.size(); ++d) {
    AffineForm form = *as_affine(access.indices[d], static_cast<int>(axes));
    for (size_t i = 0; i < axes; ++i) {
      if (is_zero(form.coefficients[i])) continue;
      result.dim[i] = result.dim[i] == -1 ? static_cast<int>(d) : -2;
      result.step[i] = form.coefficients[i];
    }
  }
  for (const IndexExpr& e : access.indices)
    result.first.push_back(as_affine(e, static_cast<int>(axes))->offset);
  result.dim_strides = dim_strides;
  result.guards = access.guards;
  return result;
}

}  // namespace quernel::schedule
