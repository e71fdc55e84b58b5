// Reads the text form that print.h writes (`#` starts a comment). Nodes are built exactly as written, without
// folding; types, lanes and scoping of names are checked as far as reading needs, the rest is verify's.
#pragma once

#include <string>
#include <string_view>

#include "loop/ir.h"
#include "support/expected.h"

namespace quernel::loop {

// `file` is only named in diagnostics, whose line counts from `first_line`.
Expected<Kernel> parse_kernel(std::string_view text, const std::string& file = {}, int first_line = 1);
// All kernels of a text, in order.
Expected<std::vector<Kernel>> parse_kernels(std::string_view text, const std::string& file = {},
                                            int first_line = 1);

}  // namespace quernel::loop
