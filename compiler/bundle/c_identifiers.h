// Names of a model as C identifiers.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace quernel::bundle {

// Every character that C has not in identifiers becomes '_'; "m" is put before a leading digit or '_', '_'
// behind a keyword of C or C++; "unnamed" where nothing is left. "conv.1" -> "conv_1", "3d" -> "m3d", "int"
// -> "int_".
std::string c_identifier(std::string_view name);
// As in macros: all letters upper-case.
std::string upper_case(std::string_view identifier);

// Gives each name of one scope an identifier of its own, also in upper case: "_2", "_3"… is put behind one
// that has been taken.
class Identifiers {
 public:
  std::string add(std::string_view name);

 private:
  std::set<std::string> taken_;  // in upper case
};

}  // namespace quernel::bundle
