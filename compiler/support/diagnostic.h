// Diagnostics: what went wrong, where, what was expected and found, and what to do about it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quernel {

enum class DiagnosticKind {
  kInvalidInput,  // the user's model, text, option or file is wrong
  kUnsupported,   // the input is legal, but Quernel (or the chosen target) cannot do it
  kInternal,      // a defect of Quernel
};

// Where a value, node or diagnostic comes from. Empty fields are unknown.
struct Location {
  std::string file;  // path as the user gave it
  std::string node;  // name of the node in the source model
  std::string op;    // its operator there, e.g. "Conv" or "com.microsoft.FusedConv"
  int line = 0;      // 1-based line in a text input; 0 when not text
};

struct Diagnostic {
  DiagnosticKind kind = DiagnosticKind::kInvalidInput;
  Location place;
  std::string pass;     // pass or stage that reports it
  std::string message;  // "expected X, found Y", lower case, no period
  std::string hint;     // next step for the user, may be empty
};

using Diagnostics = std::vector<Diagnostic>;

std::string_view to_string(DiagnosticKind kind);
// One diagnostic on one line: `error[unsupported]: FILE: node 'n' (Op): message; hint`.
std::string to_string(const Diagnostic& diagnostic);
std::string to_string(const Diagnostics& diagnostics);

Diagnostic invalid_input(std::string message, Location place = {}, std::string hint = {});
Diagnostic unsupported(std::string message, Location place = {}, std::string hint = {});
Diagnostic internal_error(std::string message, Location place = {}, std::string pass = {});

// A description of what went wrong inside the compiler; terminates with an internal-error message. Only for
// broken invariants of our own code that a verifier should have caught before.
[[noreturn]] void fatal(const char* file, int line, const std::string& message);

}  // namespace quernel

#define QUERNEL_ASSERT(cond)                                                       \
  do {                                                                             \
    if (!(cond)) ::quernel::fatal(__FILE__, __LINE__, "broken invariant: " #cond); \
  } while (0)
#define QUERNEL_UNREACHABLE(what) ::quernel::fatal(__FILE__, __LINE__, what)
