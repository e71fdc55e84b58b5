// The hash by which anybody can tell whether a file is the one that was compiled.
#pragma once

#include <string>

namespace quernel::codegen {

// Returns the SHA-256 (FIPS 180-4) of a regular file as 64 lower-case hexadecimal digits, as `sha256sum` prints them;
// empty: it cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace quernel::codegen
