// What a bundle holds, printed for a person or as JSON.
#pragma once

#include <string>

#include "quernel/runtime.hpp"

namespace quernel::tools {

struct ListOptions {
  std::string name;  // of the file
  bool json = false, kernels = false, schedule = false;
  bool check = false;  // hashes of the weights have been checked
};

void list_contents(const Bundle& bundle, const ListOptions& options);

// Only the choices about kernels, as a file for `quernel compile --tuning`.
void list_choices(const Bundle& bundle);

}  // namespace quernel::tools
