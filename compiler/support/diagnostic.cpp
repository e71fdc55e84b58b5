#include "support/diagnostic.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "support/fatal_hook.h"

namespace quernel {

std::string_view to_string(DiagnosticKind kind) {
  switch (kind) {
    case DiagnosticKind::kInvalidInput:
      return "invalid input";
    case DiagnosticKind::kUnsupported:
      return "unsupported";
    case DiagnosticKind::kInternal:
      return "internal";
  }
  return "internal";
}

std::string to_string(const Diagnostic& d) {
  std::string text = "error[";
  text += to_string(d.kind);
  text += "]: ";
  if (!d.place.file.empty()) {
    text += d.place.file;
    if (d.place.line > 0) text += ":" + std::to_string(d.place.line);
    text += ": ";
  } else if (d.place.line > 0) {
    text += "line " + std::to_string(d.place.line) + ": ";
  }
  if (!d.place.node.empty()) text += "node '" + d.place.node + "'";
  if (!d.place.op.empty())
    text += (d.place.node.empty() ? "op " : " (") + d.place.op + (d.place.node.empty() ? "" : ")");
  if (!d.place.node.empty() || !d.place.op.empty()) text += ": ";
  text += d.message;
  if (!d.pass.empty()) text += " [" + d.pass + "]";
  if (!d.hint.empty()) text += "; " + d.hint;
  return text;
}

std::string to_string(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) text += to_string(d) + "\n";
  return text;
}

Diagnostic invalid_input(std::string message, Location place, std::string hint) {
  return {DiagnosticKind::kInvalidInput, std::move(place), {}, std::move(message), std::move(hint)};
}
Diagnostic unsupported(std::string message, Location place, std::string hint) {
  return {DiagnosticKind::kUnsupported, std::move(place), {}, std::move(message), std::move(hint)};
}
Diagnostic internal_error(std::string message, Location place, std::string pass) {
  return {DiagnosticKind::kInternal, std::move(place), std::move(pass), std::move(message),
          "this is a defect of quernel, please report it with the model"};
}

void fatal(const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "quernel: internal error at %s:%d: %s\n", file, line, message.c_str());
  run_fatal_hook();
  std::abort();
}

}  // namespace quernel
