// What free dims have to be for a model to make sense: equations and bounds between dims, solved for one
// symbol.
#pragma once

#include <optional>
#include <vector>

#include "graph/dim.h"

namespace quernel {

// That a dim is at least a number.
struct LeastDim {
  Dim dim;
  int64_t least = 0;
};

// The value of the dim's only symbol from which on the dim is at least `least`, while below it is not;
// nullopt where there is none, or it cannot be shown.
std::optional<int64_t> minimum_for(const Symbol& symbol, const LeastDim& wanted);
// The value up to which it is, while above it is not.
std::optional<int64_t> maximum_for(const Symbol& symbol, const LeastDim& wanted);

// A value of a symbol, over the others, that makes two dims equal.
struct DimSolution {
  Dim symbol, value;
};
// All of them, of the symbols that occur linearly and are bound before a run.
std::vector<DimSolution> solve_equal(const Dim& a, const Dim& b);

// Whether two dims are equal for many values of their symbols: for equations that are true, but that nothing
// here can show.
bool equal_on_samples(const Dim& a, const Dim& b);
// Whether, among such values, two dims are equal only where these symbols are multiples of m.
bool solutions_are_multiples(const Dim& a, const Dim& b, const std::vector<Symbol>& symbols, int64_t m);

}  // namespace quernel
