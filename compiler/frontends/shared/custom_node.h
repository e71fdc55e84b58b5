// Nodes that the user has described (graph/custom_op.h) become custom ops.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "frontends/shared/imported_node.h"
#include "graph/custom_op.h"

namespace quernel {

// What an attribute of a custom op may be.
using AttributeValue = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                                    std::vector<std::string>>;
using AttributeValues = std::map<std::string, AttributeValue>;

// Returns the attributes in the text form of graph/custom_op.h.
std::string custom_attributes_text(const AttributeValues& values);

// Emits a custom op on the node's inputs. Returns its first `count` results. Invalid where the node has more results, or
// other inputs, than the description.
Expected<std::vector<ValueId>> add_custom_op(ImportedNode& n, const CustomOpDescription& op,
                                             std::string attributes, int count);

}  // namespace quernel
