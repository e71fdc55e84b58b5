#include "schedule/contraction/operand_access.h"

#include <algorithm>
#include <limits>

#include "schedule/contraction/contraction_plan.h"

namespace quernel::schedule {
namespace {

bool is_output(const Graph& graph, ValueId v) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](const Graph::Output& output) { return output.value == v; });
}

}  // namespace

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
  result.constant = graph.constant(access.base) != nullptr;
  result.dtype = graph.dtype(access.base);
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
  result.dim_strides = dim_strides;
  result.guards = access.guards;
  return result;
}

}  // namespace quernel::schedule
