// Names of a model as C identifiers.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace quernel::bundle {

// Returns a C identifier for a name. Every character not allowed in C identifiers becomes '_'. "m" is added
// before a leading digit or '_', and '_' after a keyword of C or C++. An empty result becomes "unnamed".
// "conv.1" -> "conv_1", "3d" -> "m3d", "int" -> "int_".
std::string c_identifier(std::string_view name);
// Returns the identifier in upper case, as macros have it.
std::string upper_case(std::string_view identifier);

// Gives each name of one scope a unique identifier, also in upper case: "_2", "_3"… is added to one already
// taken.
class Identifiers {
 public:
  std::string add(std::string_view name);

 private:
  std::set<std::string> taken_;  // in upper case
};

}  // namespace quernel::bundle
