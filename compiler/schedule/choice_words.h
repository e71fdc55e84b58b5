// The words of a choice's text: names, each with its value.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/dim.h"

namespace quernel::schedule {

std::vector<std::string_view> words_of(std::string_view text);
std::string joined(const std::vector<std::string_view>& words);
// Returns whether the text is a number above 0.
bool parse_number(std::string_view text, int64_t& value);
// Returns a dim without blanks, and without what has a meaning in a file of choices.
std::string key_word(const Dim& dim);

// Pairs of a name and a value.
struct Properties {
  std::vector<std::string_view> names;
  bool has(std::string_view name) const;
};
// Gives each pair to `set`, which returns whether it knows the name and the value. Returns whether it knew all, and each
// name came once.
bool parse_properties(const std::vector<std::string_view>& words,
                      const std::function<bool(std::string_view name, std::string_view value)>& set,
                      Properties& properties);

}  // namespace quernel::schedule
