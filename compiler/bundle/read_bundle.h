// Reads an open *.qnl file as BundleContents, to be changed and written again. Contents that are read and
// written unchanged give the same bytes.
#pragma once

#include <cstddef>
#include <span>

#include "bundle/bundle_contents.h"

namespace quernel::bundle {

// file: the bytes that the runtime has opened without an error, not a file of the same name, because nothing
// is checked here. Constants and code are views of them.
BundleContents read_bundle(std::span<const std::byte> file);

}  // namespace quernel::bundle
