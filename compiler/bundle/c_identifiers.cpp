#include "bundle/c_identifiers.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace quernel::bundle {
namespace {

// Of C99 and C++20, those without '_' in front, and macros of <stdint.h>'s kind that are no identifiers.
constexpr auto kKeywords = std::to_array<std::string_view>({"alignas",
                                                            "alignof",
                                                            "and",
                                                            "and_eq",
                                                            "asm",
                                                            "auto",
                                                            "bitand",
                                                            "bitor",
                                                            "bool",
                                                            "break",
                                                            "case",
                                                            "catch",
                                                            "char",
                                                            "char16_t",
                                                            "char32_t",
                                                            "char8_t",
                                                            "class",
                                                            "co_await",
                                                            "co_return",
                                                            "co_yield",
                                                            "compl",
                                                            "concept",
                                                            "const",
                                                            "const_cast",
                                                            "consteval",
                                                            "constexpr",
                                                            "constinit",
                                                            "continue",
                                                            "decltype",
                                                            "default",
                                                            "delete",
                                                            "do",
                                                            "double",
                                                            "dynamic_cast",
                                                            "else",
                                                            "enum",
                                                            "explicit",
                                                            "export",
                                                            "extern",
                                                            "false",
                                                            "float",
                                                            "for",
                                                            "friend",
                                                            "goto",
                                                            "if",
                                                            "inline",
                                                            "int",
                                                            "long",
                                                            "mutable",
                                                            "namespace",
                                                            "new",
                                                            "noexcept",
                                                            "not",
                                                            "not_eq",
                                                            "nullptr",
                                                            "operator",
                                                            "or",
                                                            "or_eq",
                                                            "private",
                                                            "protected",
                                                            "public",
                                                            "register",
                                                            "reinterpret_cast",
                                                            "requires",
                                                            "restrict",
                                                            "return",
                                                            "short",
                                                            "signed",
                                                            "sizeof",
                                                            "static",
                                                            "static_assert",
                                                            "static_cast",
                                                            "struct",
                                                            "switch",
                                                            "template",
                                                            "this",
                                                            "thread_local",
                                                            "throw",
                                                            "true",
                                                            "try",
                                                            "typedef",
                                                            "typeid",
                                                            "typename",
                                                            "union",
                                                            "unsigned",
                                                            "using",
                                                            "virtual",
                                                            "void",
                                                            "volatile",
                                                            "wchar_t",
                                                            "while",
                                                            "xor",
                                                            "xor_eq",
                                                            "NULL",
                                                            "linux",
                                                            "unix"});

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string c_identifier(std::string_view name) {
  std::string result;
  for (char c : name) result += is_letter_or_digit(c) ? c : '_';
  if (result.find_first_not_of('_') == std::string::npos) return "unnamed";
  if (result[0] == '_' || (result[0] >= '0' && result[0] <= '9')) result.insert(result.begin(), 'm');
  if (std::find(kKeywords.begin(), kKeywords.end(), result) != kKeywords.end()) result += '_';
  return result;
}

std::string upper_case(std::string_view identifier) {
  std::string result(identifier);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

std::string Identifiers::add(std::string_view name) {
  std::string first = c_identifier(name), result = first;
  for (int n = 2; !taken_.insert(upper_case(result)).second; ++n) result = first + "_" + std::to_string(n);
  return result;
}

}  // namespace quernel::bundle
