// Remembers how constants have been packed.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "graph/ir.h"
#include "schedule/choices.h"

namespace quernel::schedule {

// Packings by contents and order. Schedules of one bundle that share this object pack equal weights alike, so
// that the bundle stores them once. `choices`: those of a file; may be null.
class Packings {
 public:
  explicit Packings(Choices* choices = nullptr) : choices_(choices) {}
  // Returns the packings of the companion CPU, if this object belongs to a GPU.
  Packings& of_companion() {
    if (!companion_) companion_ = std::make_unique<Packings>(choices_);
    return *companion_;
  }
  Choices* choices() const { return choices_; }
  // Returns the vectors per panel: those of an equal constant packed before, else `wanted`.
  int panel_v(const Tensor& data, const std::string& order, int wanted);

 private:
  struct Known {
    Tensor data;
    std::string order;
    int panel_v;
  };
  Choices* choices_;
  std::unordered_multimap<size_t, Known> known_;  // by sampled_hash
  std::unique_ptr<Packings> companion_;
};

}  // namespace quernel::schedule
