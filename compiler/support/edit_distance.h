// Edit distance: how far a mistaken name is from a legal one, for suggestions in diagnostics.
#pragma once

#include <cstddef>
#include <string_view>

namespace quernel {

// Levenshtein distance: insertions, deletions and substitutions of single characters.
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace quernel
