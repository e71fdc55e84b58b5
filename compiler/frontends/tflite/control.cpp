// Operators that run other subgraphs: IF, WHILE, CALL, STABLEHLO_COMPOSITE.
#include "frontends/tflite/operators.h"
#include "graph/outline.h"

namespace quernel::tflite_import {
namespace {

constexpr int kSelectLimit = 4;  // elementwise nodes of a branch that is computed in any case

std::vector<ValueId> operands_from(NodeImport& n, size_t first) {
  return {n.inputs.begin() + static_cast<std::ptrdiff_t>(first), n.inputs.end()};
}

std::string name_of(NodeImport& n, const char* fallback) {
  return n.output_names.empty() || n.output_names[0].empty() ? fallback : n.output_names[0];
}

// One bool of a condition, whatever its shape of one element is.
ValueId one_bool(NodeImport& n, ValueId condition) {
  return n.build.cast(n.build.reshape(condition, {}), DType::kBool);
}

// The results of a subgraph, of which there must be `count`.
std::vector<ValueId> results_of(NodeImport& n, int64_t subgraph, const std::vector<ValueId>& operands,
                                size_t count) {
  std::vector<ValueId> results = n.inline_subgraph(subgraph, operands);
  if (results.size() != count)
    n.build.fail(n.invalid("expected " + std::to_string(count) + " results of subgraph " +
                           std::to_string(subgraph) + ", found " + std::to_string(results.size())));
  return results;
}

}  // namespace

Status import_if(NodeImport& n) {
  const auto& options = n.options<tflite::IfOptions>();
  std::vector<ValueId> operands = operands_from(n, 1);
  if (const Tensor* known = n.constant(n.in(0)); known && known->count() == 1) {
    bool holds = element_as_i64(*known, 0) != 0;
    return n.set_outputs(
        n.inline_subgraph(holds ? options.then_subgraph_index() : options.else_subgraph_index(), operands));
  }
  auto branch = [&](int64_t number) {
    return [&n, &operands, number]() -> std::optional<std::vector<ValueId>> {
      return results_of(n, number, operands, n.outputs.size());
    };
  };
  std::optional<std::vector<ValueId>> results =
      build_branch(n.build, name_of(n, "if"), one_bool(n, n.in(0)), branch(options.then_subgraph_index()),
                   branch(options.else_subgraph_index()), kSelectLimit);
  if (!results) return internal_error("a branch without results", n.build.location());
  return n.set_outputs(*std::move(results));
}

Status import_while(NodeImport& n) {
  const auto& options = n.options<tflite::WhileOptions>();
  auto goes_on = [&](const std::vector<ValueId>& values) {
    return one_bool(n, results_of(n, options.cond_subgraph_index(), values, 1)[0]);
  };
  LoopSpec spec{name_of(n, "while"), n.inputs, std::nullopt, goes_on(n.inputs)};
  auto step = [&](const Dim&, const std::vector<ValueId>& carried) -> std::optional<LoopStep> {
    LoopStep made;
    made.carried = results_of(n, options.body_subgraph_index(), carried, carried.size());
    made.condition = goes_on(made.carried);
    return made;
  };
  std::optional<std::vector<ValueId>> results = build_loop(n.build, spec, step);
  if (!results) return internal_error("a loop without results", n.build.location());
  return n.set_outputs(*std::move(results));
}

Status import_call(NodeImport& n) {
  return n.set_outputs(n.inline_subgraph(n.options<tflite::CallOptions>().subgraph(), n.inputs));
}

// The decomposition is what the composite means; its name and attributes are for those that know better.
Status import_stablehlo_composite(NodeImport& n) {
  const auto& options = n.options2<tflite::StableHLOCompositeOptions>();
  return n.set_outputs(n.inline_subgraph(options.decomposition_subgraph_index(), n.inputs));
}

}  // namespace quernel::tflite_import
