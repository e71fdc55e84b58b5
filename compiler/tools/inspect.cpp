// quernel inspect: what a bundle holds, for a person to read.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "command.h"
#include "description.h"
#include "list_contents.h"
#include "open_device.h"
#include "quernel/runtime.hpp"

namespace quernel::tools {
namespace {

struct Options {
  std::string bundle;
  bool json = false, check = false, schedule = false, kernels = false, tuning = false, session = false;
  std::string entry;  // of the session; empty: the first
  run::DeviceChoice device;
};

// A session as it is when it has been made, and its device.
int print_session(const Bundle& bundle, const Options& options) {
  qnl_session_options session_options = {};
  if (!options.entry.empty()) session_options.entry_point = options.entry.c_str();
  qnl_error error = {};
  run::OpenedDevice opened;
  Session session;
  if (opened.open(options.device, bundle, options.bundle, &session_options, &error) != QNL_OK ||
      session.create(bundle, opened.device, &session_options, &error) != QNL_OK)
    return fail(invalid_input(fmt::format("{}: {}", qnl_status_text(error.status), error.text),
                              {.file = options.bundle}));
  qnl_text_form form = options.json ? QNL_JSON : QNL_TEXT;
  std::string device = describe(opened.device.get(), form), plan = describe(session.get(), form);
  fmt::print(fmt::runtime(options.json ? "{{\"device\": {}, \"session\": {}}}\n" : "{}\n{}"), device, plan);
  return kOk;
}

int run(const Options& options) {
  if (std::string message = run::check_device_name(options.device.device); !message.empty())
    return usage_error("--device: " + message);
  qnl_bundle_options open_options = {};
  open_options.verify_weights = options.check ? 1 : 0;
  qnl_error error;
  Bundle bundle;
  if (bundle.open(options.bundle.c_str(), &open_options, &error) != QNL_OK)
    return fail(invalid_input(fmt::format("{}: {}", qnl_status_text(error.status), error.text),
                              {.file = options.bundle}));
  if (options.session) return print_session(bundle, options);
  if (options.tuning)
    list_choices(bundle);
  else
    list_contents(bundle, {options.bundle, options.json, options.kernels, options.schedule, options.check});
  return kOk;
}

}  // namespace

Action define_inspect(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("BUNDLE", options->bundle, "the bundle")->required();
  app.add_flag("--check", options->check, "also check the hashes of the weights, which reads them all");
  app.add_flag("--kernels", options->kernels, "print every kernel");
  app.add_flag("--schedule", options->schedule, "print the schedule: every item, what it reads and writes");
  CLI::Option* tuning =
      app.add_flag("--tuning", options->tuning,
                   "print only the choices about kernels, as a file for `quernel compile --tuning`");
  CLI::Option* session =
      app.add_flag("--session", options->session,
                   "print a session on this machine instead: its device, memory, arenas, items, bindings")
          ->excludes(tuning);
  app.add_option("--device", options->device.device, std::string("of the session: ") + run::kDeviceHelp)
      ->type_name("D")
      ->needs(session);
  app.add_option("--entry", options->entry, "entry point of the session (default: the first)")
      ->type_name("NAME")
      ->needs(session);
  app.add_flag("--json", options->json, "print one JSON object instead of text")->excludes(tuning);
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
