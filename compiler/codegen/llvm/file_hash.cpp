#include "codegen/llvm/file_hash.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "support/file.h"

namespace quernel::codegen {

std::string sha256_of_file(const std::string& path) {
  std::string reason;
  int fd = open_regular_file(path, &reason);
  if (fd < 0) return {};
  llvm::SHA256 hash;
  std::vector<char> piece(1 << 16);
  ssize_t count = 0;
  while ((count = read(fd, piece.data(), piece.size())) > 0 || (count < 0 && errno == EINTR))
    if (count > 0) hash.update(llvm::StringRef(piece.data(), static_cast<size_t>(count)));
  close(fd);
  return count < 0 ? std::string() : llvm::toHex(hash.final(), /*LowerCase=*/true);
}

}  // namespace quernel::codegen
