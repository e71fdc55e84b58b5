// Sequences and optionals, which exist while importing only: every element is a value of the graph, and how
// many there are is known.
#pragma once

#include <vector>

#include "graph/ir.h"

namespace quernel::onnx_import {

struct Collection {
  bool is_optional = false;
  std::vector<ValueId> elements;  // of an optional one or none, which may be a sequence
};

// Collections travel where tensors do, as handles below kNoValue.
inline bool is_collection(ValueId v) { return v < kNoValue; }

class CollectionTable {
 public:
  ValueId add(Collection collection) {
    collections_.push_back(std::move(collection));
    return kNoValue - static_cast<ValueId>(collections_.size());
  }
  const Collection& at(ValueId handle) const {
    return collections_[static_cast<size_t>(kNoValue - 1 - handle)];
  }

 private:
  std::vector<Collection> collections_;
};

}  // namespace quernel::onnx_import
