// A constant in the order in which a kernel reads it. It is made from its sources when it is written, and never held
// whole.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/tensor.h"

namespace quernel::schedule {

struct PackedConstant {
  // Receives bytes in order, in any number of calls.
  using Sink = std::function<void(std::span<const std::byte>)>;

  DType dtype = DType::kF32;
  int64_t bytes = 0;
  std::vector<Tensor> sources;
  std::string recipe;  // equal recipes make equal bytes of equal sources
  std::function<void(const Sink&)> pack;
};

// A hash of dtype and dims, if there are any, and of some of the bytes, so that large weights are read in full only where another tensor looks
// alike.
size_t sampled_hash(const Bytes& bytes);
size_t sampled_hash(const Tensor& tensor);
size_t sampled_hash(const PackedConstant& constant);

// Whether both are equal. They give the pages that they have read back to their files.
bool same_bytes(const Bytes& a, const Bytes& b);
bool same_tensor(const Tensor& a, const Tensor& b);
// Whether both are the same bytes, as far as sources and recipe tell.
bool same_constant(const PackedConstant& a, const PackedConstant& b);

}  // namespace quernel::schedule
