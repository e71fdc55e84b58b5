// Links relocatable objects into one image as schemas/kernel_abi.h describes it: one read-and-execute
// segment, no relocations, no undefined symbols. In process, one link at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/expected.h"

namespace quernel::codegen {

Expected<std::vector<uint8_t>> link_image(const std::vector<std::string>& objects, const std::string& entry);

}  // namespace quernel::codegen
