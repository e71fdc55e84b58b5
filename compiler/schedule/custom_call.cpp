// What a custom op's function or kernel gets beside its bindings.
#include "schedule/custom_call.h"
#include "graph/control.h"
#include "graph/rewrite.h"

namespace quernel::schedule {
namespace {

std::string type_pattern(const TensorType& type) {
  std::string text(to_string(type.dtype));
  text += "[";
  for (size_t d = 0; d < type.shape.size(); ++d) text += d ? ",?" : "?";
  return text + "]";
}

}  // namespace

bool is_custom_result(const Graph& graph, const Node& node) {
  return node.op == OpKind::k_result && graph.def(node.inputs[0])->op == OpKind::k_custom;
}

Shape custom_dims(const Graph& graph, const Node& node) {
  Shape dims;
  for (ValueId v : node.inputs) dims.insert(dims.end(), graph.shape(v).begin(), graph.shape(v).end());
  for (const TensorType& type : node.attributes.custom->results)
    dims.insert(dims.end(), type.shape.begin(), type.shape.end());
  return dims;
}

std::string custom_signature(const Graph& graph, const Node& node) {
  std::string text;
  for (ValueId v : node.inputs) text += (text.empty() ? "" : ",") + type_pattern(graph.type(v));
  text += "->";
  for (const TensorType& type : node.attributes.custom->results)
    text += (text.ends_with("->") ? "" : ",") + type_pattern(type);
  return text;
}

Expected<Graph> give_kernels_attributes(Graph graph,
                                        const std::function<bool(const std::string& name)>& has_kernel) {
  bool any = any_node(graph, [&](const Node& node) {
    return node.op == OpKind::k_custom && has_kernel(node.attributes.custom->name);
  });
  if (!any) return graph;
  QUERNEL_TRY(graph, rewrite(graph, [&](Rewriter& r, const Node& node) -> ValueId {
                if (node.op != OpKind::k_custom || !has_kernel(node.attributes.custom->name)) return kNoValue;
                const std::string& text = node.attributes.custom->attributes;
                std::vector<uint8_t> bytes(text.c_str(), text.c_str() + text.size() + 1);
                std::vector<ValueId> operands;
                for (ValueId v : node.inputs) operands.push_back(r(v));
                operands.push_back(
                    r.build.constant(make_tensor(DType::kU8, {static_cast<int64_t>(bytes.size())}, bytes)));
                return r.build.add(node.op, std::move(operands), node.attributes);
              }));
  return transform_bodies(std::move(graph), [&](const Node&, const Graph& body) {
    return give_kernels_attributes(body, has_kernel);
  });
}

}  // namespace quernel::schedule
