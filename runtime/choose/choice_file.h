// The file that keeps the choice of a device from one process to the next.
#pragma once

#include "quernel/runtime.h"

namespace quernel::runtime {

// False where there is no file or it is damaged. Else reason, numbers, keys and text are those of the file;
// whether it is of these keys is the caller's to look at.
bool read_choice(const char* path, qnl_choice* choice);
// Replaces the file as a whole; where that cannot be, the next process decides anew.
void write_choice(const char* path, const qnl_choice& choice);

}  // namespace quernel::runtime
