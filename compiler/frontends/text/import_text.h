// The text frontend: a file with the graph IR's own text form (graph/text.h).
#pragma once

#include <string>

#include "graph/ir.h"

namespace quernel {

// Reads, parses and verifies; diagnostics name the file and line.
Expected<Graph> import_text(const std::string& path);

}  // namespace quernel
