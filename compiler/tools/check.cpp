// quernel check: everything of a model that cannot be compiled, reported together; no code is generated.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <set>

#include "command.h"
#include "compile_flags.h"
#include "json.h"
#include "print.h"
#include "quernel/compiler.h"

namespace quernel::tools {
namespace {

struct Options {
  std::string model;
  CompileFlags flags;
  bool json = false;
};

Json to_json(const std::string& model, const Diagnostics& diagnostics, const CheckReport& report) {
  Json::Array problems, note_list, labels, signatures;
  Json properties = Json::Object{};
  for (const Diagnostic& d : diagnostics)
    problems.push_back(Json::Object{{"kind", to_string(d.kind)},
                                    {"node", d.place.node},
                                    {"op", d.place.op},
                                    {"line", d.place.line},
                                    {"pass", d.pass},
                                    {"message", d.message},
                                    {"hint", d.hint}});
  for (const std::string& note : report.notes) note_list.push_back(note);
  for (const auto& [name, value] : report.about.properties) properties.set(name, value);
  for (const ModelAbout::Labels& l : report.about.labels)
    labels.push_back(Json::Object{{"file", l.file}, {"count", l.count()}});
  for (const std::string& name : report.about.signatures) signatures.push_back(name);
  return Json::Object{{"model", model},
                      {"supported", diagnostics.empty()},
                      {"problems", std::move(problems)},
                      {"notes", std::move(note_list)},
                      {"properties", std::move(properties)},
                      {"labels", std::move(labels)},
                      {"signatures", std::move(signatures)}};
}

void print_about(const ModelAbout& about) {
  for (const auto& [name, value] : about.properties) print("  {}: {}\n", name, first_line(value));
  for (const ModelAbout::Labels& l : about.labels) print("  labels: {}, {} of them\n", l.file, l.count());
  for (const std::string& name : about.signatures) print("  signature: {}\n", name);
}

int run(const Options& options) {
  Expected<CompileOptions> compile_flags = compile_options(options.flags);
  if (!compile_flags) return fail(compile_flags.errors()), kUsage;
  Expected<CheckReport> report = check(options.model, *compile_flags);
  Diagnostics diagnostics = report ? Diagnostics{} : report.errors();
  if (options.json) {
    fmt::print("{}", to_json(options.model, diagnostics, report ? *report : CheckReport{}).dump());
    return diagnostics.empty() ? kOk : kFailure;
  }
  if (diagnostics.empty()) {
    print("{}: can be compiled\n", options.model);
    print_about(report->about);
    for (const std::string& note : report->notes) print("note: {}\n", note);
    return kOk;
  }
  fail(diagnostics);
  std::set<std::string> ops;
  for (const Diagnostic& d : diagnostics)
    if (!d.place.op.empty()) ops.insert(d.place.op);
  std::string names;
  for (const std::string& op : ops) names += (names.empty() ? " (" : ", ") + op;
  print("{}: {} problem{}{}\n", options.model, diagnostics.size(), diagnostics.size() == 1 ? "" : "s",
        names.empty() ? "" : names + ")");
  return kFailure;
}

}  // namespace

Action define_check(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("MODEL", options->model, "the model")->required();
  add_target_flags(app, options->flags);
  add_shape_flags(app, options->flags);
  add_model_flags(app, options->flags);
  add_choice_flags(app, options->flags);
  add_entry_flags(app, options->flags);
  app.add_flag("--json", options->json, "print one JSON object instead of text");
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
