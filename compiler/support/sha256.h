// SHA-256 (FIPS 180-4), by which anybody can tell whether a file is the one that was compiled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quernel {

class Sha256 {
 public:
  void add(std::string_view bytes);
  // Returns 64 lower-case hexadecimal digits. Nothing may be added afterwards.
  std::string finish();

 private:
  void block(const unsigned char* bytes);
  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char buffer_[64] = {};
  uint64_t total_ = 0;  // bytes
};

// Returns the digits for a regular file, as `sha256sum` prints them; empty: it cannot be read.
std::string sha256_of_file(const std::string& path);

}  // namespace quernel
