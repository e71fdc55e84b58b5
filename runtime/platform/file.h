// Replaces a whole file: for programs' output, and for what devices keep between runs.
#pragma once

#include <stdint.h>

namespace quernel::platform {

struct Piece {
  const void* data;
  uint64_t bytes;
};
// Writes the pieces one after another to a new file, which then replaces the one at the path. Readers see the
// old file or all of the new one. If this fails or the process is killed, nothing of the new file is left. A
// link at the path is replaced, not followed. path has at most 4000 characters. Returns false on failure,
// with errno set.
bool replace_file(const char* path, const Piece* pieces, uint32_t count);

}  // namespace quernel::platform
