// Where a tool keeps files of its own while it works.
#pragma once

#include "support/temporary_directory.h"

namespace quernel::tools {

using ScratchDir = TemporaryDirectory;

}  // namespace quernel::tools
