// The first half of opening a bundle: checks that the bytes are a well-formed FlatBuffer of bundle.fbs.
// schema::VerifyBundleBuffer has a function per table for this. Here one loop over a description of the
// tables does it in a seventh of the code; a test checks that both give the same answers. Included by
// bundle_reader*.cpp only.
#pragma once

#include <stdint.h>

namespace quernel::runtime {

// Returns true if every offset, vector, string and table lies inside the structure and is aligned, and every
// required field is present. structure: aligned to 64 bytes, less than 2^31 bytes. max_work limits how often
// tables, vectors and strings may be shared. It thereby limits the work of all later walks over them.
bool verify_shape(const uint8_t* structure, uint32_t bytes, uint32_t max_work);

// Returns the work that suffices for every structure of this size that the writer makes: tables and vectors
// are not shared, and shared strings add up to at most four times these bytes.
inline constexpr uint32_t max_shape_work(uint32_t bytes) { return 2 * bytes; }

}  // namespace quernel::runtime
