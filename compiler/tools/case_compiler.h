// Compiles the model of a verify case as its data sets need it: as it is when all shapes are fixed, else with
// the free dims of a data set, and, where operands must be known at compile time (Slice's starts, Reshape's
// shape…) but the model takes them as inputs, with their values from the data set.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data_set.h"
#include "pipeline.h"

namespace quernel::tools {

struct CompiledCase {
  std::string bundle;           // path
  std::set<std::string> fixed;  // inputs that are constants in it
};

class CaseCompiler {
 public:
  // Bundles are written to `scratch_dir`.
  CaseCompiler(std::string model, CompileOptions options, std::string scratch_dir)
      : model_(std::move(model)), options_(std::move(options)), scratch_dir_(std::move(scratch_dir)) {}

  Expected<CompiledCase> compile_for(const DataSet& set);

 private:
  using Shapes = std::map<std::string, std::vector<int64_t>>;

  Shapes shapes_of(const DataSet& set) const;
  Diagnostics better_of(Diagnostics with_shapes) const;
  Expected<CompiledCase> compile_fixed(const DataSet& set, const Shapes& shapes, Diagnostics reasons);
  Expected<std::string> write_bundle(const Graph& graph, const Shapes& shapes);

  std::string model_;
  CompileOptions options_;
  std::string scratch_dir_;
  std::optional<Expected<Imported>> imported_;  // without shapes from data
  std::map<Shapes, std::string> bundles_;
  int files_ = 0;
};

}  // namespace quernel::tools
