// What the user says about where nodes run, on targets that are a GPU with a companion CPU.
#pragma once

#include <string>

namespace quernel {

struct PlaceRule {
  std::string pattern;        // shell pattern for names of the model's nodes
  bool on_companion = false;  // else on the GPU
};

}  // namespace quernel
