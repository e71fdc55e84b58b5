#include "frontends/shared/import_rounds.h"

#include <utility>

#include "frontends/shared/empty_dims.h"

namespace quernel {
namespace {

Expected<ImportedModel> import_assuming(const ImportOptions& options,
                                        const std::function<Expected<ImportedModel>(ImportRound&)>& attempt,
                                        ImportRound& round) {
  while (true) {
    round.wanted.clear();
    round.assumed = false;
    Expected<ImportedModel> result = attempt(round);
    size_t before = round.fixed.size();
    for (const auto& [name, node] : round.wanted)
      if (options.input_values.count(name)) round.fixed.emplace(name, node);
    if (result || (round.fixed.size() == before && !round.assumed)) return result;
  }
}

}  // namespace

Expected<ImportedModel> import_in_rounds(
    const ImportOptions& options, const std::function<Expected<ImportedModel>(ImportRound&)>& attempt) {
  return import_with_empty_dims(
      [&](const std::set<std::string>& never_empty, std::set<std::string>& unranged) {
        ImportRound round;
        for (const std::string& name : never_empty) round.assumptions.min[name] = 1;
        Expected<ImportedModel> result = import_assuming(options, attempt, round);
        unranged = std::move(round.unranged);
        return result;
      });
}

void note_assumptions(const ImportRound& round, ImportedModel& result) {
  result.notes.insert(result.notes.end(), round.assumptions.notes.begin(), round.assumptions.notes.end());
  for (const auto& [name, least] : round.assumptions.least)
    if (!round.assumptions.same_as.count(name))
      result.notes.push_back("free dim '" + name + "' must be at least " + std::to_string(least));
  for (const auto& [name, most] : round.assumptions.max)
    if (!round.assumptions.same_as.count(name))
      result.notes.push_back("free dim '" + name + "' must be at most " + std::to_string(most));
  for (const auto& [name, multiple] : round.assumptions.multiple_of)
    result.notes.push_back("free dim '" + name + "' must be a multiple of " + std::to_string(multiple));
  for (const auto& [name, node] : round.fixed) {
    result.notes.push_back("input '" + name + "' is fixed to the given value, which node " + node +
                           " needs at compile time");
    result.fixed_inputs.push_back(name);
  }
}

Expected<ValueId> fixed_input(const std::string& name, const TensorType& type, const Tensor& value,
                              Graph& graph, const Location& place) {
  bool fits = value.dtype == type.dtype && value.dims.size() == type.shape.size();
  for (size_t i = 0; fits && i < value.dims.size(); ++i)
    fits = !type.shape[i].is_const() || type.shape[i].value() == value.dims[i];
  if (!fits)
    return invalid_input("input '" + name + "': expected a value of " + to_string(type) + ", found " +
                             to_string(TensorType{value.dtype, make_shape(value.dims)}),
                         place);
  Attributes attributes;
  attributes.tensor = value;
  return graph.add(OpKind::k_constant, {}, std::move(attributes), place, name);
}

}  // namespace quernel
