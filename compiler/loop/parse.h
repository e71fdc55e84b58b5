// Reads the text form that print.h writes (`#` starts a comment). Nodes are built exactly as written, without
// folding. Types, lanes and scoping of names are checked only as far as reading requires; verify checks the
// rest.
#pragma once

#include <string>
#include <string_view>

#include "loop/ir.h"
#include "support/expected.h"

namespace quernel::loop {

// `file` only appears in diagnostics, whose lines count from `first_line`.
Expected<Kernel> parse_kernel(std::string_view text, const std::string& file = {}, int first_line = 1);
// Reads all kernels of a text, in order.
Expected<std::vector<Kernel>> parse_kernels(std::string_view text, const std::string& file = {},
                                            int first_line = 1);

}  // namespace quernel::loop
