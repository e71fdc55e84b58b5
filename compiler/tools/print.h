// Lines for a person on standard output.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include "schemas/printable.h"

namespace quernel::tools {

template <class T>
decltype(auto) shown(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>)
    return printable(value);
  else
    return (value);
}
template <class T>
using Shown = std::remove_cvref_t<decltype(shown(std::declval<const T&>()))>;

// The first line of a text, and how many it has: "background … (21 lines)".
inline std::string first_line(std::string_view text) {
  size_t end = std::min(text.find('\n'), text.size());
  auto lines = std::count(text.begin(), text.end(), '\n') + (text.ends_with('\n') ? 0 : 1);
  return std::string(text.substr(0, end)) + (lines > 1 ? fmt::format(" … ({} lines)", lines) : "");
}

// As fmt::print, but texts among the arguments, such as names of a model, stay on their line and show as what
// they are.
template <class... T>
void print(fmt::format_string<const Shown<T>&...> format, const T&... arguments) {
  fmt::print("{}",
             fmt::vformat(format, fmt::make_format_args(static_cast<const Shown<T>&>(shown(arguments))...)));
}

// The same on standard error, where nobody may be reading.
template <class... T>
void print_note(fmt::format_string<const Shown<T>&...> format, const T&... arguments) {
  std::string text =
      fmt::vformat(format, fmt::make_format_args(static_cast<const Shown<T>&>(shown(arguments))...));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace quernel::tools
