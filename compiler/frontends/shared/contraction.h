// Building contractions: axes in order, extent-1 axes left out of the iteration, empty ones answered without
// one.
#pragma once

#include <string>
#include <vector>

#include "frontends/shared/imported_node.h"

namespace quernel {

class ContractionBuilder {
 public:
  // The index of a new axis; the constant 0 where its extent is 1. All output axes come before the reduction
  // axes.
  IndexExpr axis(std::string name, const Dim& extent) { return add(std::move(name), extent, false); }
  IndexExpr reduction(std::string name, const Dim& extent) { return add(std::move(name), extent, true); }

  // Emits out[...] = sum a[...] * b[...]; zeros where an extent is 0. `accumulator`: i32 for narrow integers,
  // which is then the result's dtype; integers wrap otherwise.
  ValueId emit(ImportedNode& n, ValueId a, std::vector<IndexExpr> index_a, ValueId b,
               std::vector<IndexExpr> index_b, std::vector<IndexExpr> index_out,
               std::optional<DType> accumulator = {});

 private:
  IndexExpr add(std::string name, const Dim& extent, bool reduction);

  std::vector<Contraction::Axis> axes_;
};

}  // namespace quernel
