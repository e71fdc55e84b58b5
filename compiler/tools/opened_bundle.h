// A bundle file that is opened once: what the runtime has verified is what a tool reads and writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "quernel/runtime.hpp"
#include "support/expected.h"

namespace quernel::tools {

struct OpenedBundle {
  Bundle bundle;
  bundle::BundleContents contents;  // with views of the mapped file
};

// verify_weights: also the hashes of constants and test values.
Expected<std::unique_ptr<OpenedBundle>> open_bundle(const std::string& path, bool verify_weights);

// Where the variants that --target names are, in this order.
Expected<std::vector<uint32_t>> find_variants(const bundle::BundleContents& contents,
                                              const std::vector<std::string>& targets);

}  // namespace quernel::tools
