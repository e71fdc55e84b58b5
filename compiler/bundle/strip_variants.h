// strip_variants: the contents of a bundle for some of its variants only, without what only the others need.
// They are those that compiling for these variants alone gives, as far as they depend on no choice that all
// variants share.
#pragma once

#include <cstdint>
#include <vector>

#include "bundle/bundle_contents.h"

namespace quernel::bundle {

// `variants`: indices of those that stay, in their new order; no index twice. Constants have views, as
// read_bundle gives them. Constants whose place depends on symbols stay whole.
BundleContents strip_variants(BundleContents contents, const std::vector<uint32_t>& variants);

}  // namespace quernel::bundle
