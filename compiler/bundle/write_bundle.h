// write_bundle: stores BundleContents as a *.qnl file. The bytes depend on the contents only, and the file
// appears whole or not at all: it is written beside its destination and renamed.
#pragma once

#include <cstdint>
#include <string>

#include "bundle/bundle_contents.h"
#include "support/expected.h"

namespace quernel::bundle {

// The schema version this writer produces, and the oldest runtime version that can run it.
inline constexpr uint32_t kSchemaVersion = 1;
inline constexpr uint32_t kMinRuntimeVersion = 0x000100;  // 0.1.0, as QNL_RUNTIME_VERSION counts

// Byte counts of a written file, for reports.
struct BundleSizes {
  uint64_t file = 0;
  uint64_t structure = 0;  // FlatBuffer
  uint64_t code = 0;       // all distinct images
  uint64_t constants = 0;  // all constants segments
};

// Writes `contents` to `path`. Constants are streamed, never held whole. Fails with invalid input when the
// file cannot be written, and with an internal diagnostic when the contents contradict themselves (a bad
// index, overlapping pieces, a producer of the wrong length…); then nothing is left at `path` that was not
// there before.
Expected<BundleSizes> write_bundle(const BundleContents& contents, const std::string& path);

}  // namespace quernel::bundle
