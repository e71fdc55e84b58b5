// What can be chosen about a kernel, and files of such choices, as `quernel tune` writes them. Estimates choose; a
// choice in a file overrides them. It is found by the target's name and the kernel's key, a text that tells kernels
// apart.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "schedule/contraction/tiling.h"
#include "schedule/plans/loop_choice.h"
#include "support/expected.h"

namespace quernel::schedule {

// A choice about a contraction, or about loops over elements.
using Choice = std::variant<Tiling, LoopChoice>;
std::string to_string(const Choice& choice);
// Errors say what was expected and found, without a location.
Expected<Choice> parse_choice(std::string_view text);

// The choices in a file, one a line: TARGET KEY = CHOICE. `#` starts a comment.
//   x86-64-v4 gemm f32*f32 packed rows 49:512:512 columns 512:0:1 reduce 512:1:0 = tile 7x48
//   x86-64-v4 map exp axes 64 300 reads f32:300:1 writes f32:1:64 = along 1 tiles 8 across 0
class Choices {
 public:
  static Expected<Choices> parse(std::string_view text, const std::string& file);
  static Expected<Choices> read(const std::string& path);

  // Returns the choice, which then counts as used, or null.
  const Choice* find(const std::string& target, const std::string& key);
  // Returns the error for a choice, found before, that is illegal. `expected` describes the legal ones.
  Diagnostic refuse(const std::string& target, const std::string& key, const std::string& expected) const;
  // Returns a note about choices for these targets that no kernel has used, if there are any.
  std::optional<std::string> unused(const std::vector<std::string>& targets) const;

 private:
  struct Line {
    Choice choice;
    int number = 0;
    bool used = false;
  };
  std::string file_;
  std::map<std::pair<std::string, std::string>, Line> lines_;  // by target and key
};

}  // namespace quernel::schedule
