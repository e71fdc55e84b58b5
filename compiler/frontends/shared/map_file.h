// Model files and their data, mapped into memory.
#pragma once

#include <string>

#include "graph/tensor.h"
#include "support/expected.h"

namespace quernel {

// Returns a read-only mapping of a whole file. `what`: what the file is, for diagnostics.
Expected<Bytes> map_file(const std::string& path, const std::string& what);

}  // namespace quernel
