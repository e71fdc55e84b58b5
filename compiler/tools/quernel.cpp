// quernel: the host tool. Picks a subcommand from the table; each lives in its own file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>

#include "command.h"
#include "support/file.h"
#include "support/temporary_directory.h"

namespace quernel::tools {
namespace {

struct Command {
  const char* name;
  const char* sentence;
  Action (*define)(CLI::App& app);
};

constexpr Command kCommands[] = {
    {"compile", "compile a model into a bundle", define_compile},
    {"check", "list what of a model cannot be compiled", define_check},
    {"verify", "compile and run models, compare with their reference data", define_verify},
    {"test", "run test vectors on a device", define_test},
    {"inspect", "print what a bundle holds", define_inspect},
    {"strip", "keep some variants of a bundle", define_strip},
    {"bench", "measure load time, latency and kernels", define_bench},
    {"tune", "measure tilings of a model's contractions", define_tune},
    {"opt", "run passes on IR text", define_opt},
    {"probe", "measure a Vulkan device and write its profile", define_probe},
    {"targets", "list the targets", define_targets},
    {"devices", "describe what this machine has to run bundles on", define_devices},
};

constexpr const char* kFooter =
    "A model is an .onnx file, or .qg: graph IR text.\n"
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
  }
  if (argc < 2) {
    std::fputs(app.help().c_str(), stdout);
    return kOk;
  }
  if (argv[1][0] != '-' && !is_command(argv[1]))
    return usage_error(fmt::format("unknown command '{}': expected one of {}", argv[1], command_names()));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error), kOk;  // --help, --version
    std::string message = error.what();
    for (char& c : message)
      if (c == '\n') c = ' ';
    std::string command = is_command(argv[1]) ? std::string(argv[1]) + " " : "";
    return usage_error(fmt::format("{}; `quernel {}--help` explains", message, command));
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
