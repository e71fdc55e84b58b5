// Compiles the model of a verify case as its data sets need it: once for all sizes where its free dims can
// stay free, a bundle is made and takes the data set's sizes, else with the shapes of a data set; and, where
// operands must be known at compile time (Slice's starts, Reshape's shape…) but the model takes them as
// inputs, with their values. One bundle serves all sets that agree in these.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data_set.h"
#include "frontends/import_file.h"
#include "pipeline/pipeline.h"

namespace quernel::tools {

struct CompiledCase {
  bool any_shape = false;                               // free dims are free in it
  std::map<std::string, Shape> free_shapes;             // then of all inputs
  std::vector<Symbol> symbols;                          // and what they may be
  std::map<std::string, std::vector<int64_t>> shapes;   // else of all inputs in the data set
  std::map<std::string, std::vector<std::byte>> fixed;  // inputs that are constants in it, with their values
  std::string signature;                                // of the model, that the data sets call
  std::vector<std::string> kept;                        // initializers that are inputs, as the set has others
  std::set<std::string> random;                         // outputs computed from random numbers
  std::set<std::string> fourier;                        // outputs that a Fourier transform gives
  std::string bundle;                                   // path; of a static library the stem
  CompileReport report;
};

class CaseCompiler {
 public:
  // Bundles are written to `scratch_dir`.
  CaseCompiler(std::string model, CompileOptions options, std::string scratch_dir)
      : model_(std::move(model)), options_(std::move(options)), scratch_dir_(std::move(scratch_dir)) {}

  // Gives the set's inputs the model's names, and leaves out those that are initializers of these values.
  Status name_inputs(DataSet& set);
  // Initializers that stay inputs: those of the options, and those for which a named set has other values.
  std::vector<std::string> kept_in(const DataSet& set) const;
  // Requires named inputs. The result lives as long as the compiler.
  Expected<const CompiledCase*> compile_for(const DataSet& set);

 private:
  bool is_initializer(const DataSet& set, const std::string& input) const;
  CompileOptions options_for(const DataSet& set) const;
  std::string model_;
  CompileOptions options_;
  std::string scratch_dir_;
  // The model with its free dims, where it has any and is supported so.
  Expected<CompiledCase> compile_free(const DataSet& set);
  Expected<CompiledCase> compile_with(const DataSet& set, const CompileOptions& options);

  std::map<std::string, ModelInputs> inputs_;  // of each signature
  std::list<CompiledCase> compiled_;
  std::set<std::string> tried_free_;  // signatures
};

}  // namespace quernel::tools
