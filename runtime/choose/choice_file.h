// The file that keeps the choice of a device between processes.
#pragma once

#include "quernel/runtime.h"

namespace quernel::runtime {

// Returns false if there is no file or it is damaged. Otherwise fills in reason, numbers, keys and text. The
// caller checks whether the keys match.
bool read_choice(const char* path, qnl_choice* choice);
// Replaces the whole file. If that fails, the next process decides again.
void write_choice(const char* path, const qnl_choice& choice);

}  // namespace quernel::runtime
