// Pieces of the graph's text form that are of use on their own: the attributes of one node identify it, up to
// its operands.
#pragma once

#include <string>

#include "graph/ir.h"

namespace quernel {

// The node's attributes as they stand between its operands and its type: "{1, 0}", "[0:8:2] edge", "acc f32",
// …; only those that the op uses. Constants give their data.
std::string attributes_text(const Node& node, int64_t elide_constants = 0);
std::string type_text(const TensorType& type);  // A constant's data: "{1, 2}", "{0.5 ...}" where all elements
                                                // are equal, "<0102>" for larger data.
std::string data_text(const Tensor& tensor, int64_t elide_constants = 0);
// The names that a contraction's axes have in the text: their own where these are unique identifiers, else
// d0, d1, ….
std::vector<std::string> axis_names(const Contraction& contraction);

}  // namespace quernel
