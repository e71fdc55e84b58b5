// Importing a model in rounds: what one attempt finds out about free dims and inputs, the next one takes for granted.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "frontends/import_options.h"
#include "frontends/shared/dim_assumptions.h"

namespace quernel {

struct ImportRound {
  // Inputs that are constants, with their values from the options, and the first nodes that need them.
  std::map<std::string, std::string> fixed;
  DimAssumptions assumptions;
  // ---- to be filled by the attempt
  std::map<std::string, std::string> wanted;  // inputs that should be fixed
  bool assumed = false;                       // whether it has added to the assumptions
  std::set<std::string> unranged;             // symbols that the options give no range
};

// Returns the first success, or the errors of an attempt that adds nothing for another one.
Expected<ImportedModel> import_in_rounds(const ImportOptions& options,
                                         const std::function<Expected<ImportedModel>(ImportRound&)>& attempt);
// Adds what was assumed and fixed to the notes and fixed inputs of the result.
void note_assumptions(const ImportRound& round, ImportedModel& result);
// Adds the value of an input as a constant of the input's name. Requires that it fits the input's type.
Expected<ValueId> fixed_input(const std::string& name, const TensorType& type, const Tensor& value,
                              Graph& graph, const Location& place);

}  // namespace quernel
