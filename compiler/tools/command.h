// What the subcommands share: how one is declared, how failures are told, how sizes and times are written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "support/expected.h"

namespace CLI {
class App;
}

namespace quernel::tools {

enum ExitCode : int { kOk = 0, kFailure = 1, kUsage = 2 };

// Runs the parsed command and returns its exit code.
using Action = std::function<int()>;

// Each declares its options on `app`; what they are parsed into lives in the action.
Action define_compile(CLI::App& app);
Action define_check(CLI::App& app);
Action define_verify(CLI::App& app);
Action define_test(CLI::App& app);
Action define_inspect(CLI::App& app);
Action define_probe(CLI::App& app);
Action define_strip(CLI::App& app);
Action define_bench(CLI::App& app);
Action define_tune(CLI::App& app);
Action define_opt(CLI::App& app);
Action define_targets(CLI::App& app);
Action define_devices(CLI::App& app);

// Prints to stderr, one line each; returns kFailure.
int fail(const Diagnostics& diagnostics);
int fail(const Diagnostic& diagnostic);
// A command line that cannot be understood; returns kUsage.
int usage_error(const std::string& message);

// The diagnostic that tells most: the first that is not of kind unsupported, which makes *unsupported false.
const Diagnostic& telling(const Diagnostics& diagnostics, bool* unsupported);

// A diagnostic on one line, whatever its texts hold.
std::string one_line(const Diagnostic& diagnostic);

std::string format_bytes(uint64_t bytes);    // "1.5 MB", powers of 1000
std::string format_seconds(double seconds);  // "1.2 ms"
double now_seconds();                        // monotonic
std::string file_name(const std::string& path);

// Writes text to a file, whole or not at all: beside it, then renamed. "-" is stdout.
Status write_text_file(const std::string& path, const std::string& text);

// Whether `output` can be written, made from `model`: fails before the work is done, not after; writing
// checks again.
Status check_output(const std::string& model, const std::string& output);

}  // namespace quernel::tools
