// The head of an `if` in C and GLSL.
#pragma once

#include <string>

namespace quernel::codegen {

// Returns `if (CONDITION)`. Comparisons are printed in parentheses; clang reports a second pair as a possible
// mistake of `==` for `=`.
inline std::string if_text(const std::string& condition) {
  int depth = 0;
  size_t end = 0;  // end of the pair that begins the text
  for (; end < condition.size(); ++end) {
    if (condition[end] == '(') ++depth;
    if (condition[end] == ')') --depth;
    if (depth == 0) break;
  }
  bool in_parentheses = !condition.empty() && condition[0] == '(' && end + 1 == condition.size();
  return "if " + (in_parentheses ? condition : "(" + condition + ")");
}

}  // namespace quernel::codegen
