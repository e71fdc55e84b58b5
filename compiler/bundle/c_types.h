// Types of elements in C.
#pragma once

#include <string_view>

#include "support/dtype.h"

namespace quernel::bundle {

// Returns the type of an element in C; packed and narrow floating-point types are bytes and words.
std::string_view c_element_type(DType dtype);

}  // namespace quernel::bundle
