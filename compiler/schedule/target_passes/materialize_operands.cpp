// Makes every contraction operand readable in place by a contraction kernel, and takes packed dtypes out of
// cats.
#include <algorithm>
#include <limits>
#include <set>
#include <unordered_set>

#include "graph/passes/constant_operand.h"
#include "graph/quantized.h"
#include "graph/rewrite.h"
#include "schedule/attention/streamed_attention.h"
#include "schedule/contraction/plan_contraction.h"
#include "schedule/contraction/sliding_windows.h"
#include "schedule/target_passes/target_passes.h"
#include "schedule/winograd/winograd_plan.h"

namespace quernel::schedule {

namespace {

constexpr int64_t kSmallPad = 4096;  // elements that one kernel copies as fast as three fill around them

// A value's elements one after another. Large padded ones are put together from the value and its borders, so
// that whoever computes the value may write it where it is padded:
//   contiguous(pad x) -> cat(border, cat(border, x, border), border)
ValueId contiguous(GraphBuilder& build, ValueId x) {
  const Node* pad = build.graph().def(x);
  bool splits = pad && pad->op == OpKind::k_pad && pad->attributes.mode == PadMode::kConstant &&
                !always_lt(element_count(build.graph().shape(x)), kSmallPad);
  if (!splits) return build.add(OpKind::k_contiguous, {x});
  const Attributes attributes = pad->attributes;
  ValueId whole = pad->inputs[0];
  for (size_t d = attributes.starts.size(); d-- > 0;) {
    std::vector<ValueId> parts;
    auto border = [&](const Dim& width) {
      if (width == Dim(0)) return;
      Shape shape = build.graph().shape(whole);
      shape[d] = width;
      parts.push_back(build.full(build.graph().dtype(whole), shape, attributes.fill));
    };
    border(attributes.starts[d]);
    parts.push_back(whole);
    border(attributes.stops[d]);
    if (parts.size() > 1) whole = build.cat(parts, static_cast<int64_t>(d));
  }
  return whole;
}

// The output axes in the order in which the output's elements walk them, the slowest first.
std::vector<int64_t> output_order(const Contraction& c) {
  int axes = static_cast<int>(c.axes.size());
  std::vector<int64_t> order;
  for (const IndexExpr& e : c.out) {
    AffineForm form = *as_affine(e, axes);
    size_t first = order.size();
    for (int i = 0; i < axes; ++i)
      if (!(form.coefficients[i] == Dim(0))) order.push_back(i);
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
                     [&](int64_t i, int64_t j) {
                       // A digit of one value may have any coefficient.
                       if (c.axes[i].extent == Dim(1) || c.axes[j].extent == Dim(1)) return false;
                       return form.coefficients[i].estimate() > form.coefficients[j].estimate();
                     });
  }
  for (int i = 0; i < axes && !c.axes[i].reduction; ++i)
    if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);  // of one element
  return order;
}

// Whether operand a or b, which is not packed, is better copied into its own order: its last dim is summed
// over, so that several products are taken at a time then, for enough columns.
bool copy_for_dots(const Graph& graph, const Node& node, const ContractionPlan& plan, int operand,
                   const Target& target) {
  const Contraction& c = node.attributes.contraction;
  int64_t fewest_columns = staged_images(target).fewest_dot_columns;
  if (fewest_columns == 0 || plan.dot > 1 || !plan.packed || plan.elementwise ||
      dot_width(graph.dtype(node.inputs[0]), graph.dtype(node.inputs[1]), c.accumulator, target) == 1 ||
      !always_le(fewest_columns, plan.axes[plan.vector_axis].extent))
    return false;
  const std::vector<IndexExpr>& map = operand == 0 ? c.a : c.b;
  int axes = static_cast<int>(c.axes.size());
  std::optional<AffineForm> last = as_affine(map.back(), axes);
  if (!last) return false;
  for (int i = 0; i < axes; ++i)
    if (c.axes[i].reduction && !(c.axes[i].extent == Dim(1)) && last->coefficients[i] == Dim(1)) return true;
  return false;
}

// The whole contraction as an elementwise product and a sum, for shapes without an axis to vectorise.
ValueId product_and_sum(GraphBuilder& build, const Contraction& c, ValueId a, ValueId b) {
  Shape domain;
  std::vector<int64_t> reduced;
  for (size_t i = 0; i < c.axes.size(); ++i) {
    domain.push_back(c.axes[i].extent);
    if (c.axes[i].reduction) reduced.push_back(static_cast<int64_t>(i));
  }
  a = build.cast(build.view(a, domain, {c.a, {}}), c.accumulator);
  b = build.cast(build.view(b, domain, {c.b, {}}), c.accumulator);
  ValueId sum = build.reduce(OpKind::k_reduce_sum, build.binary(BinaryOp::k_mul, a, b), reduced, false);
  return build.permute(sum, output_order(c));
}

// Operands of packed dtype may begin within a byte, so they are put together as bytes.
ValueId cat_unpacked(Rewriter& r, const Node& node) {
  DType dtype = r.old.dtype(node.output);
  std::vector<ValueId> bytes;
  for (ValueId v : node.inputs)
    bytes.push_back(r.build.cast(r(v), dtype == DType::kI4 ? DType::kI8 : DType::kU8));
  return r.build.cast(r.build.cat(std::move(bytes), node.attributes.ints[0]), dtype);
}

// What is no operand of a contraction as it is; afterwards every operand is what it will be.
ValueId replace_special(Rewriter& r, const Node& node) {
  if (node.op == OpKind::k_cat && is_packed(r.old.dtype(node.output))) return cat_unpacked(r, node);
  if (node.op != OpKind::k_contract) return kNoValue;
  const std::vector<Contraction::Axis>& axes = node.attributes.contraction.axes;
  bool empty = std::any_of(axes.begin(), axes.end(),
                           [](const Contraction::Axis& axis) { return axis.extent == Dim(0); });
  return empty ? r.build.full(r.old.dtype(node.output), r.old.shape(node.output), 0) : kNoValue;
}

// Whether the contraction's kernel can read its quantised operand `i`: words of a constant, or rows of bytes.
bool widens(const Graph& graph, const Node& node, int i, const Target& target) {
  const Contraction& c = node.attributes.contraction;
  const ValueId base = resolve_operand(graph, node, i).base;
  OperandStrides strides[2];
  for (int k = 0; k < 2; ++k) {
    OperandAccess access = resolve_operand(graph, node, k);
    if (!access.direct() && k == i) return false;
    Shape dims = graph.shape(access.base);
    if (!access.direct()) {  // it will be copied
      access = {node.inputs[k], k == 0 ? c.a : c.b};
      access.affine = true;
      dims = graph.shape(node.inputs[k]);
    }
    strides[k] = operand_strides(graph, access, contiguous_strides(dims), 0, c.axes.size());
  }
  const ContractionPlan plan = plan_contraction(c, strides[0], strides[1], target);
  if (c.winograd != 0 || plan.vector_axis < 0 || !plan.blocks) return false;
  return quantized_constant(graph, base) || plan.blocks->group_of_a != 0;
}

bool is_rows_of_bytes(const Graph& graph, ValueId v) {
  const Node* node = graph.def(v);
  return node && node->op == OpKind::k_dequantize_rows;
}

// Quantised operands that a kernel cannot read become floats.
Expected<Graph> widen_others(const Graph& graph, const Target& target) {
  std::unordered_set<ValueId> floats;
  for (const Node& node : graph.nodes) {
    if (node.op != OpKind::k_contract) continue;
    for (int i = 0; i < 2; ++i) {
      const ValueId base = resolve_operand(graph, node, i).base;
      if ((quantized_constant(graph, base) || is_rows_of_bytes(graph, base)) &&
          !widens(graph, node, i, target))
        floats.insert(base);
    }
  }
  // Rows that something else reads, too.
  for (const Node& node : graph.nodes)
    if (node.op != OpKind::k_contract)
      for (ValueId v : node.inputs)
        if (is_rows_of_bytes(graph, v)) floats.insert(v);
  for (const Graph::Output& output : graph.outputs)
    if (is_rows_of_bytes(graph, output.value)) floats.insert(output.value);
  return rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
    if (node.op == OpKind::k_dequantize && !quantized_constant(graph, node.output))  // what did not fold
      return dequantized(r.build, r(node.inputs[0]), r(node.inputs[1]),
                         node.inputs.size() > 2 ? r(node.inputs[2]) : kNoValue, node.attributes.ints);
    if (!floats.count(node.output)) return kNoValue;
    if (node.op == OpKind::k_dequantize_rows) {
      const std::vector<int64_t>& numbers = node.attributes.ints;
      std::vector<int64_t> groups(r.old.shape(node.output).size(), 1);
      const bool of_whole_rows = r.old.dtype(node.inputs.back()) == DType::kI32;
      groups.back() = of_whole_rows ? r.old.shape(node.output).back().value() : numbers[0];
      const size_t digits = node.inputs.size() - 2;
      ValueId x = r(node.inputs[0]);
      for (size_t d = 1; d < digits; ++d) {
        x = r.build.binary(BinaryOp::k_mul, r.build.cast(x, DType::kF32), static_cast<double>(numbers[1]));
        x = r.build.add(OpKind::k_add, {x, r.build.cast(r(node.inputs[d]), DType::kF32)});
      }
      return dequantized(r.build, x, r(node.inputs[digits]), kNoValue, groups);
    }
    std::vector<Tensor> operands;
    for (ValueId v : node.inputs) operands.push_back(*graph.constant(v));
    Expected<Tensor> widened = evaluate_node(node.op, operands, node.attributes);
    return widened ? r.build.constant(std::move(*widened)) : r.build.fail(widened.take_errors().front());
  });
}

}  // namespace

Expected<Graph> materialize_operands(const Graph& original, const Target& target) {
  QUERNEL_TRY(Graph replaced, rewrite(original, replace_special));
  QUERNEL_TRY(Graph graph, widen_others(replaced, target));
  // A kernel that streams through keys and values reads them as they are.
  std::set<ValueId> streamed;
  StreamedAttentions attentions(graph, target);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (std::optional<StreamPlan> plan = attentions.find(static_cast<int>(n)))
      for (int contraction : {plan->scores, plan->result}) streamed.insert(graph.nodes[contraction].output);
  auto rule = [&](Rewriter& r, const Node& node) -> ValueId {
    if (node.op != OpKind::k_contract || streamed.contains(node.output)) return kNoValue;
    const Contraction& c = node.attributes.contraction;
    if (c.winograd != 0 && winograd_form(graph, node))
      return kNoValue;  // its kernel reads through the padding
    Contraction contraction = c;
    contraction.winograd = 0;
    OperandAccess access[2];
    OperandStrides strides[2];
    Shape dims[2];
    std::vector<ValueId> inputs{r(node.inputs[0]), r(node.inputs[1])};
    auto copy = [&](int i) {
      inputs[i] = contiguous(r.build, inputs[i]);
      access[i] = {node.inputs[i], i == 0 ? contraction.a : contraction.b};
      access[i].affine = true;
    };
    auto plan_of = [&](bool may_copy) {
      for (int i = 0; i < 2; ++i)
        strides[i] = operand_strides(graph, access[i], contiguous_strides(dims[i]), 0, c.axes.size());
      return plan_contraction(c, strides[0], strides[1], target, {.may_copy = may_copy});
    };
    for (int i = 0; i < 2; ++i) {
      access[i] = resolve_operand(graph, node, i);
      dims[i] = graph.shape(access[i].base);
    }
    // Padding of zeros may be left to the kernel.
    auto readable = [](const OperandAccess& a) { return a.direct() || (a.affine && a.fill == 0); };
    bool by_kernel = false;
    if (readable(access[0]) && readable(access[1])) {
      ContractionPlan plan = plan_of(true);
      by_kernel = plan.staged || !plan.windows.empty();
    }
    for (int i = 0; i < 2; ++i)
      if (!access[i].direct() && !by_kernel) {
        copy(i);
        dims[i] = graph.shape(access[i].base);
      }
    ContractionPlan plan;
    for (int copies = 0;; ++copies) {
      // A copy may make another one look better. After one of each operand, what can be done without is done.
      plan = plan_of(copies < 2);
      if (plan.vector_axis < 0) {
        ValueId sum = product_and_sum(r.build, contraction, inputs[0], inputs[1]);
        return r.build.reshape(r.build.cast(sum, graph.dtype(node.output)), graph.shape(node.output));
      }
      if (plan.copy_operand < 0) break;
      // Bring the dim that the vector axis walks last.
      int operand = plan.copy_operand, axis = plan.axes[plan.vector_axis].members.back();
      std::vector<IndexExpr>& map = operand == 0 ? contraction.a : contraction.b;
      std::vector<int64_t> order;
      Shape shape = r.build.graph().shape(inputs[operand]);
      size_t last = map.size();
      for (size_t d = 0; d < map.size(); ++d)
        if (uses_axis(map[d], axis)) last = d;
      for (size_t d = 0; d < map.size(); ++d)
        if (d != last) order.push_back(static_cast<int64_t>(d));
      order.push_back(static_cast<int64_t>(last));
      std::vector<IndexExpr> permuted;
      dims[operand].clear();
      for (int64_t d : order) permuted.push_back(map[d]), dims[operand].push_back(shape[d]);
      map = permuted;
      inputs[operand] = r.build.permute(inputs[operand], order);
      copy(operand);
    }
    int moving = plan.swapped ? 1 : 0;
    if (copy_for_dots(graph, node, plan, moving, target)) copy(moving);
    return r.build.contract(inputs[0], inputs[1], std::move(contraction));
  };
  return rewrite(graph, rule);
}

}  // namespace quernel::schedule
