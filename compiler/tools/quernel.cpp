// quernel: the host tool. Picks a subcommand from the table; each lives in its own file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "command.h"
#include "support/edit_distance.h"
#include "support/file.h"
#include "support/temporary_directory.h"

namespace quernel::tools {
namespace {

struct Command {
  const char* name;
  const char* sentence;
  Action (*define)(CLI::App& app);
  const char* example;
};

constexpr Command kCommands[] = {
    {"compile", "compile a model into a bundle", define_compile,
     "quernel compile model.onnx -o model.qnl --target x86-64-v3 --dim batch=1..8"},
    {"check", "list what of a model cannot be compiled", define_check,
     "quernel check model.onnx --target cortex-m4"},
    {"verify", "compile and run models, compare with their reference data", define_verify,
     "quernel verify cases/ --device vulkan --json report.json"},
    {"test", "run test vectors on a device", define_test,
     "quernel test model.qnl --on ssh:user@board --per-kernel"},
    {"inspect", "print what a bundle holds", define_inspect, "quernel inspect model.qnl --session"},
    {"strip", "keep some variants of a bundle", define_strip,
     "quernel strip model.qnl -o small.qnl --target aarch64"},
    {"bench", "measure load time, latency and kernels", define_bench,
     "quernel bench model.onnx --threads 2 --per-kernel"},
    {"tune", "measure choices about a model's kernels", define_tune,
     "quernel tune model.onnx -o model.tuning --budget 60"},
    {"opt", "run passes on IR text", define_opt,
     "quernel opt model.onnx --passes fold-constants --print-after all"},
    {"probe", "measure a Vulkan device and write its profile", define_probe, "quernel probe -o gpu.profile"},
    {"targets", "list the targets", define_targets, "quernel targets --json"},
    {"devices", "describe what this machine has to run bundles on", define_devices, "quernel devices --json"},
};

constexpr const char* kFooter =
    "A model is an .onnx or .tflite file, or .qg: graph IR text.\n"
    "Exit status: 0 success, 1 failure (diagnostics on stderr, one line each), 2 the command line was wrong.";

std::string command_names() {
  std::string names;
  for (const Command& command : kCommands) names += (names.empty() ? "" : ", ") + std::string(command.name);
  return names;
}

bool is_command(const std::string& name) {
  for (const Command& command : kCommands)
    if (name == command.name) return true;
  return false;
}

// The one of `names` that `name` is likely to be a slip of; empty where none is near.
std::string nearest(const std::string& name, const std::vector<std::string>& names) {
  std::string best;
  size_t least = name.size() / 4 + 2;  // a distance below: two slips, more in long names
  for (const std::string& other : names)
    if (size_t distance = edit_distance(name, other); distance < least) least = distance, best = other;
  return best;
}

// "; did you mean '--target'?" where an option of the command is near one of the words, which none is.
std::string suggestion(const CLI::App& command, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (int i = 2; i < argc; ++i) {
    std::string word(argv[i]);
    word.resize(std::min(word.find('='), word.size()));
    if (!word.starts_with("--") || std::find(names.begin(), names.end(), word) != names.end()) continue;
    if (std::string name = nearest(word, names); !name.empty())
      return fmt::format("; did you mean '{}'?", name);
  }
  return "";
}

int run(int argc, char** argv) {
  CLI::App app("Quernel compiles trained models ahead of time into bundles that a tiny runtime runs.",
               "quernel");
  app.footer(kFooter);
  app.set_version_flag("--version", "quernel " QUERNEL_VERSION);
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Command& command : kCommands) {
    CLI::App* sub = app.add_subcommand(command.name, command.sentence);
    actions.emplace_back(sub, command.define(*sub));
    std::string footer = sub->get_footer();
    sub->footer((footer.empty() ? "" : footer + "\n\n") + "Example: " + command.example);
  }
  if (argc < 2) {
    std::fputs(app.help().c_str(), stdout);
    return kOk;
  }
  // `quernel help compile` is `quernel compile --help`.
  std::string help_option = "--help";
  char* asked[] = {argv[0], argc > 2 ? argv[2] : help_option.data(), help_option.data()};
  if (std::strcmp(argv[1], "help") == 0) argv = asked, argc = argc > 2 ? 3 : 2;
  if (argv[1][0] != '-' && !is_command(argv[1])) {
    std::vector<std::string> names;
    for (const Command& command : kCommands) names.push_back(command.name);
    std::string near = nearest(argv[1], names);
    return usage_error(fmt::format("unknown command '{}': expected one of {}{}", argv[1], command_names(),
                                   near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error), kOk;  // --help, --version
    std::string message = error.what();
    for (char& c : message)
      if (c == '\n') c = ' ';
    const bool known = is_command(argv[1]);
    return usage_error(fmt::format("{}{}; `quernel {}--help` explains", message,
                                   known ? suggestion(*app.get_subcommand(argv[1]), argc, argv) : "",
                                   known ? std::string(argv[1]) + " " : ""));
  }
  for (auto& [sub, action] : actions)
    if (sub->parsed()) return action();
  return kOk;
}

}  // namespace
}  // namespace quernel::tools

int main(int argc, char** argv) {
  using namespace quernel;
  keep_standard_streams();
  ignore_file_size_signal();
  remove_directories_on_signals();
  try {
    int code = tools::run(argc, argv);
    if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == tools::kOk)
      return tools::fail(invalid_input("standard output cannot be written"));
    return code;
  } catch (const std::bad_alloc&) {
    return tools::fail(invalid_input("out of memory"));
  } catch (const std::exception& error) {
    if (std::ferror(stdout) != 0) return tools::fail(invalid_input("standard output cannot be written"));
    return tools::fail(internal_error(error.what()));
  }
}
