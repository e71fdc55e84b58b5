// The parts of write_bundle that do not access files: checks of the contents, the list and placement of
// segments, and the FlatBuffer built from both.
#pragma once

#include <cstdint>
#include <vector>

#include "bundle/bundle_contents.h"
#include "support/expected.h"

namespace quernel::bundle {

inline constexpr uint32_t kIdentifier = 0x314C4E51;  // "QNL1"
inline constexpr uint32_t kByteOrder = 0x01020304;
inline constexpr uint64_t kStructureOffset = 64;  // directly after the file header
inline constexpr uint64_t kSegmentAlignment = 4096;

enum class SegmentKind : uint8_t { kCode, kConstants, kTestValues };

struct Segment {
  SegmentKind kind = SegmentKind::kCode;
  size_t source = 0;  // image (code) or constants segment that it is written from
  uint64_t bytes = 0;
  uint64_t offset = 0;  // in the file, set by place_segments
  uint64_t hash = 0;    // set when the segment has been written
};

struct SegmentPlan {
  std::vector<Segment> segments;             // in file order: code, constants, test values
  std::vector<uint32_t> image_segments;      // per variant, then per companion
  std::vector<uint32_t> constants_segments;  // per ConstantsSegment
  uint32_t test_segment = 0;                 // used if there are test vectors
  std::vector<uint64_t> test_value_offsets;  // per test tensor, in order over all vectors
};

// Unsupported: more symbols, states, entry points, inputs, outputs or buffers than the runtime has room for.
Status check_counts(const BundleContents& contents);

// Returns internal diagnostics for contents that contradict themselves: indices, ranges, piece order, plans
// per variant, edges to later items, duplicate names.
Status check_contents(const BundleContents& contents);

// Lists the segments; equal images of several variants share one.
SegmentPlan plan_segments(const BundleContents& contents);

// Sets all offsets, page-aligned, from `begin` on. Returns the file's size.
uint64_t place_segments(SegmentPlan& plan, uint64_t begin);

// Returns the bits of schema::Feature that a reader of these contents must implement.
uint64_t required_features(const BundleContents& contents);

// Returns the FlatBuffer. Its size does not depend on the segments' offsets and hashes.
std::vector<uint8_t> build_structure(const BundleContents& contents, const SegmentPlan& plan);

}  // namespace quernel::bundle
