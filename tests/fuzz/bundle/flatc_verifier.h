// The verifier that flatc generates from the schema, as it comes.
#pragma once
#include <cstdint>

namespace quernel::test {

/// Whether `bytes` bytes at `structure` (aligned to 4) are a well-formed Bundle, by flatc's own verifier with
/// at most 16 levels of at most 1,000,000 tables.
bool flatc_verifies(const uint8_t* structure, uint64_t bytes);

}  // namespace quernel::test
