// Stores BundleContents as a *.qnl file. The bytes depend only on the contents. The file appears whole or not
// at all: it is written next to its destination and renamed.
#pragma once

#include <cstdint>
#include <string>

#include "bundle/bundle_contents.h"
#include "support/expected.h"

namespace quernel::bundle {

// The schema version of this writer, and the oldest runtime version that can run its bundles.
inline constexpr uint32_t kSchemaVersion = 1;
inline constexpr uint32_t kMinRuntimeVersion = 0x000100;  // 0.1.0, in the form of QNL_RUNTIME_VERSION

// Byte counts of a written file, for reports.
struct BundleSizes {
  uint64_t file = 0;
  uint64_t structure = 0;  // FlatBuffer
  uint64_t code = 0;       // of all distinct images
  uint64_t constants = 0;  // of all constants segments
};

// Writes `contents` to `path`. Constants are streamed, never held whole. Fails with invalid input if the file
// cannot be written. Fails with an internal diagnostic if the contents contradict themselves (a bad index,
// overlapping pieces, a producer of the wrong length…). After a failure `path` is unchanged.
Expected<BundleSizes> write_bundle(const BundleContents& contents, const std::string& path);

}  // namespace quernel::bundle
