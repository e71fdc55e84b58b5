// The shapes of a model's inputs: what the file declares, fixed or given a range by the options, with symbols for the
// dims that stay free.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frontends/import_options.h"
#include "frontends/shared/dim_assumptions.h"

namespace quernel {

// Returns a symbol name that the IR's text form can hold.
std::string symbol_name(const std::string& name);

// An input as the file declares it.
struct DeclaredInput {
  struct OneDim {
    std::optional<int64_t> size;  // none: free
    std::string name;             // of a free dim
  };
  std::string name;
  bool has_shape = true;
  std::vector<OneDim> dims;
};

// The graph inputs' shapes: fixes free dims from the options, makes symbols of the others.
class InputShapes {
 public:
  // `constants`: initializers that the model lists as inputs.
  // All references must outlive it.
  InputShapes(const ImportOptions& options, const DimAssumptions& assumptions, std::string file_name,
              const std::vector<std::string>& constants)
      : options_(options),
        assumptions_(assumptions),
        file_name_(std::move(file_name)),
        constants_(constants.begin(), constants.end()) {}

  // Binds named dims from whole input shapes first, so that they hold for all inputs.
  void bind(const DeclaredInput& input);
  // Requires that bind() has had all inputs.
  Expected<Shape> shape_of(const DeclaredInput& input);
  // After all inputs: the type with what stands for its symbols.
  void replace_symbols(TensorType& type) const;
  // The symbols that stand for themselves.
  std::vector<Symbol> symbols() const;
  // Those without a range from the options.
  const std::set<std::string>& unranged() const { return unranged_; }
  // After all inputs: options that fit nothing.
  Status check_unused() const;

 private:
  const std::vector<int64_t>* shape_option(const std::string& input) const;

  const ImportOptions& options_;
  const DimAssumptions& assumptions_;
  std::string file_name_;
  std::map<std::string, int64_t> bound_;  // named dims fixed through input_shapes
  std::set<std::string> free_names_, input_names_, used_symbols_, constants_, unranged_;
  std::map<std::string, std::string> symbols_;  // dim name -> symbol
  std::vector<Symbol> facts_;                   // of all symbols
};

}  // namespace quernel
