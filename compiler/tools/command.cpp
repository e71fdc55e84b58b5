#include "command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "schemas/printable.h"
#include "support/file.h"

namespace quernel::tools {

std::string one_line(const Diagnostic& diagnostic) {
  std::string text = to_string(diagnostic);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return printable(text);
}

const Diagnostic& telling(const Diagnostics& diagnostics, bool* unsupported) {
  *unsupported = true;
  for (const Diagnostic& d : diagnostics) {
    if (d.kind == DiagnosticKind::kUnsupported) continue;
    *unsupported = false;
    return d;
  }
  return diagnostics[0];
}

namespace {
// fmt::print throws where standard error is closed; there is nobody left to tell then.
void print_error(const std::string& line) { std::fprintf(stderr, "quernel: %s\n", line.c_str()); }
}  // namespace

int fail(const Diagnostics& diagnostics) {
  for (const Diagnostic& d : diagnostics) print_error(one_line(d));
  return kFailure;
}

int fail(const Diagnostic& diagnostic) { return fail(Diagnostics{diagnostic}); }

int usage_error(const std::string& message) {
  print_error(printable(message));
  return kUsage;
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes) / 1e3;
  int unit = 0;
  while (value >= 999.95 && unit < 3) value /= 1e3, ++unit;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string file_name(const std::string& path) {
  std::filesystem::path p = std::filesystem::path(path).lexically_normal();
  return (p.has_filename() ? p.filename() : p.parent_path().filename()).string();
}

Status write_text_file(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return invalid_input("standard output cannot be written");
    return {};
  }
  return write_file(path, text);
}

Status check_output(const std::string& model, const std::string& output) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path path = output, folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  Location place{.file = output};
  if (fs::is_directory(path, error))
    return invalid_input("expected a file to write, found a directory", place);
  if (!fs::is_directory(folder, error))
    return invalid_input("cannot be written: there is no directory '" + folder.string() + "'", place,
                         "create it first");
  if (access(folder.c_str(), W_OK) != 0)
    return invalid_input("cannot be written: no permission to create files in '" + folder.string() + "'",
                         place);
  if (fs::equivalent(path, model, error)) return invalid_input("the output would overwrite the model", place);
  return {};
}

}  // namespace quernel::tools
