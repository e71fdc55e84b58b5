// Names of contractions, by which choices of tilings are found and tables are read: the class of the kernel,
// and extents and strides in the roles that the plan gives its axes.
#include <algorithm>

#include "schedule/choice_words.h"
#include "schedule/contraction/contraction_text.h"
#include "schedule/contraction/operand_access.h"

namespace quernel::schedule {
namespace {

// Extents of the reduced axes that an operand's dims walk together with an axis of the output: "3x3".
std::string windows(const Contraction& c, const OperandAccess& access) {
  std::string text;
  for (const IndexExpr& e : access.indices) {
    bool output = false;
    const Dim* window = nullptr;
    for (size_t i = 0; i < c.axes.size(); ++i) {
      if (c.axes[i].extent == Dim(1) || !uses_axis(e, static_cast<int>(i))) continue;
      if (c.axes[i].reduction)
        window = &c.axes[i].extent;
      else
        output = true;
    }
    if (output && window) text += (text.empty() ? "" : "x") + key_word(*window);
  }
  return text;
}

std::string contraction_class(const Graph& graph, const Node& node, const ContractionPlan& plan) {
  const Contraction& c = node.attributes.contraction;
  OperandAccess a = resolve_operand(graph, node, plan.swapped ? 1 : 0),
                b = resolve_operand(graph, node, plan.swapped ? 0 : 1);
  std::string window = windows(c, a);
  if (window.empty()) window = windows(c, b);
  bool batched = std::any_of(plan.grid_axes.begin(), plan.grid_axes.end(),
                             [&](int i) { return !(plan.axes[i].a == Dim(0)); });
  if (!window.empty()) return (plan.elementwise ? "depthwise" : batched ? "grouped" : "conv") + window;
  if (plan.elementwise) return "products";
  if (graph.shape(a.base).size() >= 4 && graph.constant(b.base)) return batched ? "grouped1x1" : "conv1x1";
  if (row_count(plan) == Dim(1)) return batched ? "batched_gemv" : "gemv";
  return batched ? "batched_gemm" : "gemm";
}

}  // namespace

std::string contraction_text(const Graph& graph, const Node& node, const ContractionPlan& plan) {
  const Contraction& c = node.attributes.contraction;
  DType a = graph.dtype(node.inputs[plan.swapped ? 1 : 0]),
        b = graph.dtype(node.inputs[plan.swapped ? 0 : 1]);
  std::string text = contraction_class(graph, node, plan) + " " + std::string(to_string(a)) + "*" +
                     std::string(to_string(b));
  if (c.accumulator != a || c.accumulator != b) text += "+" + std::string(to_string(c.accumulator));
  if (plan.packed) text += " packed";
  if (plan.blocks)
    text += " " + std::to_string(plan.blocks->format.bits) + " bits in " +
            std::to_string(plan.blocks->steps) + "s" +
            (plan.blocks->group_of_a == 0   ? ""
             : plan.blocks->digits_of_a > 1 ? " by digits of i8"
             : plan.blocks->row_of_a > 0    ? " by i8 of rows"
                                            : " by i8");
  auto axes = [&](const char* role, const std::vector<int>& which) {
    if (which.empty()) return;
    text += std::string(" ") + role;
    for (int i : which) {
      const ContractionPlan::Axis& axis = plan.axes[i];
      text += " " + key_word(axis.extent) + ":" + key_word(axis.a);
      if (!plan.packed) text += ":" + key_word(axis.b);
      text += ":" + key_word(axis.out);
    }
  };
  axes("grid", plan.grid_axes);
  axes("rows", plan.row_axes);
  axes("columns", {plan.vector_axis});
  axes("reduce", plan.reduction_axes);
  return text;
}

std::string contraction_text(const Contraction& c, const WinogradForm& form) {
  auto extent = [&](int axis) { return key_word(c.axes[static_cast<size_t>(axis)].extent); };
  std::string text = "winograd f32";
  if (form.batch >= 0) text += " batch " + extent(form.batch);
  if (form.group >= 0) text += " groups " + extent(form.group);
  return text + " image " + extent(form.y) + "x" + extent(form.x) + " channels " + extent(form.channels) +
         " columns " + extent(form.columns);
}

}  // namespace quernel::schedule
