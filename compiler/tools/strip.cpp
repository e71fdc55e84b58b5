// quernel strip: a bundle with some of its variants only.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "command.h"
#include "opened_bundle.h"
#include "print.h"

namespace quernel::tools {
namespace {

struct Options {
  std::string bundle, output;
  std::vector<std::string> targets;
  bool no_tests = false, quiet = false;
};

int run(const Options& options) {
  if (Status status = check_output(options.bundle, options.output); !status) return fail(status.errors());
  Expected<std::unique_ptr<OpenedBundle>> opened = open_bundle(options.bundle, true);
  if (!opened) return fail(opened.errors());
  bundle::BundleContents& contents = (*opened)->contents;
  if (options.no_tests) contents.test_vectors.clear();
  const size_t had = contents.variants.size();
  Expected<bundle::BundleSizes> sizes = write_variants(**opened, options.targets, options.output);
  if (!sizes) return fail(sizes.errors());
  if (!options.quiet)
    print("{}: {} of {}, {} of {} variants\n", options.output, format_bytes(sizes->file),
          format_bytes((*opened)->bundle.info().file_bytes), options.targets.size(), had);
  return kOk;
}

}  // namespace

Action define_strip(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("BUNDLE", options->bundle, "the bundle")->required();
  app.add_option("--target", options->targets,
                 "a variant that stays, as `quernel inspect` names it; may be repeated")
      ->required()
      ->type_name("T")
      ->allow_extra_args(false);
  app.add_option("-o,--output", options->output, "the bundle to write")->required()->type_name("OUT.qnl");
  app.add_flag("--no-tests", options->no_tests, "leave the test vectors out");
  app.add_flag("-q,--quiet", options->quiet, "print nothing but diagnostics");
  return [options] { return run(*options); };
}

}  // namespace quernel::tools
