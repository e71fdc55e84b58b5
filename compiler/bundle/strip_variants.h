// Reduces the contents of a bundle to some of its variants, without what only the others need. The result
// equals compiling for these variants alone, except for choices that all variants share.
#pragma once

#include <cstdint>
#include <vector>

#include "bundle/bundle_contents.h"

namespace quernel::bundle {

// `variants`: indices of the variants to keep, in their new order, each at most once. Constants must have
// views, as read_bundle gives them. Constants whose place depends on symbols are kept whole.
BundleContents strip_variants(BundleContents contents, const std::vector<uint32_t>& variants);

}  // namespace quernel::bundle
