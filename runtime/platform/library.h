// What a device whose driver is found at run time needs of an operating system besides platform.h: shared
// libraries, and which drivers there are. Only compiled where such a device is.
#pragma once

#include <stdint.h>

namespace quernel::platform {

// Null when there is none of that name. Closing is a hint.
void* open_library(const char* name);
void* library_function(void* library, const char* name);
void close_library(void* library);

// Hands over, piece by piece and always in the same order, what says which Vulkan drivers and GPUs a process
// finds here, without loading anything: other pieces mean that something may have changed, the same ones that
// nothing has.
void describe_drivers(void (*add)(void* user, const void* data, uint64_t bytes), void* user);

}  // namespace quernel::platform
