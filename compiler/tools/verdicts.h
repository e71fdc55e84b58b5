// The verdicts of the cases that a command has tested, and whether it succeeds with them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace quernel::tools {

// Declares --allow-unsupported: which cases need not be tested, by a number or by shell patterns of their
// names.
void add_allow_unsupported_flag(CLI::App& app, std::vector<std::string>& allowed);

class Verdicts {
 public:
  explicit Verdicts(std::vector<std::string> allowed);
  // `verdict`: PASS, FAIL or UNSUPPORTED.
  void add(std::string_view verdict, const std::string& name);
  // Prints "N passed, N failed, N unsupported".
  void print() const;
  // kOk where nothing failed, and nothing was left untested that --allow-unsupported does not allow; that is
  // said on stderr.
  int exit_code() const;

  int passed = 0, failed = 0, unsupported = 0;

 private:
  std::vector<std::string> patterns_;
  int most_ = 0;                       // cases that no pattern names
  std::vector<std::string> untested_;  // those
};

}  // namespace quernel::tools
