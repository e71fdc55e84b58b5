// The first half of opening a bundle: whether bytes are a well-formed FlatBuffer of bundle.fbs. What
// schema::VerifyBundleBuffer checks with a function per table is one loop over a description of the tables
// here, which takes a seventh of the code; a test holds the two to the same answers. Included by
// bundle_reader*.cpp only.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

// Every offset, vector, string and table lies inside the structure, is aligned, and what is required is
// there. structure: aligned to 64 bytes, less than 2^31 of them. max_work bounds how often tables, vectors
// and strings are shared, and with it the work of everything that walks over them afterwards.
bool verify_shape(const uint8_t* structure, uint32_t bytes, uint32_t max_work);

// Work that suffices for every structure of these bytes whose tables and vectors are not shared, and whose
// strings are shared up to a sum of four times these bytes: the writer shares no more.
inline constexpr uint32_t max_shape_work(uint32_t bytes) { return 2 * bytes; }

}  // namespace quernel::runtime
