// States in fewer bits: f32 is widened where it is read, and rounded where it is written.
#include <unordered_map>
#include <utility>

#include "graph/rewrite.h"
#include "graph/states.h"

namespace quernel {
namespace {

Tensor rounded(const Tensor& tensor, DType dtype) {
  Tensor result{dtype, tensor.dims, {}};
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.count()) * static_cast<size_t>(element_size(dtype)));
  for (int64_t i = 0; i < tensor.count(); ++i) store_f64(dtype, bytes.data(), i, element_as_f64(tensor, i));
  result.bytes = Bytes::own(std::move(bytes));
  return result;
}

}  // namespace

Expected<Graph> narrow_states(const Graph& graph, DType dtype) {
  Graph typed = graph;
  std::vector<ValueId> inputs;  // those that change
  std::vector<size_t> outputs;
  for (Graph::State& state : typed.states) {
    ValueId input = typed.inputs[state.input];
    if (typed.dtype(input) != DType::kF32) continue;
    typed.values[static_cast<size_t>(input)].type.dtype = dtype;
    if (state.initial.bytes.size() != 0) state.initial = rounded(state.initial, dtype);
    inputs.push_back(input);
    outputs.push_back(state.output);
  }
  std::unordered_map<ValueId, ValueId> narrow;  // by the old value: the new one before it is widened
  bool begun = false;
  auto rule = [&](Rewriter& r, const Node& node) -> ValueId {
    if (!std::exchange(begun, true))
      for (ValueId input : inputs) {
        narrow[input] = r.mapped[input];
        r.mapped[input] = r.build.cast(r.mapped[input], DType::kF32);
      }
    // What a scatter leaves as it is need not be widened and rounded again.
    auto into = node.inputs.empty() ? narrow.end() : narrow.find(node.inputs[0]);
    if (!is_scatter(node.op) || node.attributes.scatter != ScatterMode::kSet || into == narrow.end())
      return kNoValue;
    ValueId next = r.build.add(
        node.op, {into->second, r(node.inputs[1]), r.build.cast(r(node.inputs[2]), dtype)}, node.attributes);
    narrow[node.output] = next;
    return r.build.cast(next, DType::kF32);
  };
  QUERNEL_TRY(Graph result, rewrite(typed, rule));
  GraphBuilder build(result);
  for (size_t output : outputs) {
    ValueId old = graph.outputs[output].value;
    auto next = narrow.find(old);
    result.outputs[output].value =
        next != narrow.end() ? next->second : build.cast(result.outputs[output].value, dtype);
  }
  QUERNEL_CHECK(build.take_status());
  return result;
}

}  // namespace quernel
