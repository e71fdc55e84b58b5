// The file that keeps the choice of a device from one process to the next.
#pragma once

#include "quernel/runtime.h"

namespace quernel::runtime {

// False where there is no file, it is damaged, or it holds a decision of another key; choice->key is the key
// that is wanted. Else reason, numbers and text of the choice are those of the file.
bool read_choice(const char* path, qnl_choice* choice);
// Replaces the file as a whole; where that cannot be, the next process decides anew.
void write_choice(const char* path, const qnl_choice& choice);

}  // namespace quernel::runtime
