#include "opened_bundle.h"

#include "bundle/read_bundle.h"
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

}  // namespace quernel::tools
