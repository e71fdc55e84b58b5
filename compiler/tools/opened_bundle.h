// A bundle file that is opened once: what the runtime has verified is what a tool reads and writes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bundle/bundle_contents.h"
#include "bundle/write_bundle.h"
#include "quernel/runtime.hpp"
#include "support/expected.h"

namespace quernel::tools {

struct OpenedBundle {
  Bundle bundle;
  bundle::BundleContents contents;  // with views of the mapped file
};

// verify_weights: also the hashes of constants and test values.
Expected<std::unique_ptr<OpenedBundle>> open_bundle(const std::string& path, bool verify_weights);

// Writes a bundle of the variants that --target names, in this order. Takes the contents. Requires verified
// weights, because what is written is hashed anew.
Expected<bundle::BundleSizes> write_variants(OpenedBundle& opened, const std::vector<std::string>& targets,
                                             const std::string& path);

}  // namespace quernel::tools
