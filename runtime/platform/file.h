// A file replaced as a whole: what programs write, and what devices keep from run to run.
#pragma once

#include <stdint.h>

namespace quernel::platform {

struct Piece {
  const void* data;
  uint64_t bytes;
};
// Writes the pieces one after another to a new file, which then takes the path's place; readers see the old
// file or all of the new one. Nothing is left of a file that does not get there, also where the process is
// killed; a link at the path is replaced, not followed. path has at most 4000 characters. False: errno says
// why.
bool replace_file(const char* path, const Piece* pieces, uint32_t count);

}  // namespace quernel::platform
