#include "opened_bundle.h"

#include <fmt/format.h>

#include <algorithm>

#include "bundle/read_bundle.h"
#include "bundle/strip_variants.h"
#include "core/bundle.h"
#include "timing.h"

namespace quernel::tools {

Expected<std::unique_ptr<OpenedBundle>> open_bundle(const std::string& path, bool verify_weights) {
  auto opened = std::make_unique<OpenedBundle>();
  qnl_error error;
  qnl_bundle_options options = {};
  options.verify_weights = verify_weights ? 1 : 0;
  if (opened->bundle.open(path.c_str(), &options, &error) != QNL_OK) return runtime_error(error);
  const platform::MappedFile& file = opened->bundle.get()->file;
  opened->contents =
      bundle::read_bundle({static_cast<const std::byte*>(file.data), static_cast<size_t>(file.bytes)});
  return opened;
}

namespace {

// Where the variants that --target names are, in this order.
Expected<std::vector<uint32_t>> find_variants(const bundle::BundleContents& contents,
                                              const std::vector<std::string>& targets) {
  std::vector<uint32_t> found;
  for (const std::string& target : targets) {
    std::string names;
    uint32_t v = 0;
    for (; v < contents.variants.size() && contents.variants[v].target != target; ++v)
      names += (names.empty() ? "" : ", ") + contents.variants[v].target;
    if (v == contents.variants.size())
      return invalid_input(
          fmt::format("--target: expected one of those in the bundle, {}, found '{}'", names, target));
    if (std::find(found.begin(), found.end(), v) != found.end())
      return invalid_input(fmt::format("--target: '{}' is named twice", target));
    found.push_back(v);
  }
  return found;
}

}  // namespace

Expected<bundle::BundleSizes> write_variants(OpenedBundle& opened, const std::vector<std::string>& targets,
                                             const std::string& path) {
  QUERNEL_TRY(std::vector<uint32_t> variants, find_variants(opened.contents, targets));
  return bundle::write_bundle(bundle::strip_variants(std::move(opened.contents), variants), path);
}

}  // namespace quernel::tools
