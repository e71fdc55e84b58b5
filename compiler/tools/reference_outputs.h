// Outputs of a model with random weights (CompileOptions::random_weights): what this machine's processor
// computes takes the place of those that a data set has, which are of the model's own weights.
#pragma once

#include <set>
#include <string>

#include "case_compiler.h"
#include "json.h"

namespace quernel::tools {

class ReferenceOutputs {
 public:
  // `options`: of the model that is tested; its targets do not matter. Bundles are written below
  // `scratch_dir`.
  ReferenceOutputs(const std::string& model, CompileOptions options, const std::string& scratch_dir);

  struct Names {
    // Outputs of integers and booleans: one that is off by a rounding error may be another integer.
    std::set<std::string> not_compared;
    Json tolerances;  // as tolerance.json has them: 1e-3 of an element or 1e-4 of the output's largest
  };
  // Requires named inputs. Fails where nothing would be compared.
  Expected<Names> replace(DataSet& set);

 private:
  std::string scratch_dir_;
  CaseCompiler compiler_;
};

}  // namespace quernel::tools
