// The operating system's services for a device whose driver is found at run time, in addition to platform.h:
// shared libraries, and a list of drivers. Only compiled with such a device.
#pragma once

#include <stdint.h>

namespace quernel::platform {

// Returns null if there is no library of that name. Closing is a hint.
void* open_library(const char* name);
void* library_function(void* library, const char* name);
void close_library(void* library);

// Passes data that identifies the Vulkan drivers and GPUs available to a process, piece by piece and always
// in the same order, without loading anything. Equal pieces mean that nothing has changed; other pieces mean
// that something may have.
void describe_drivers(void (*add)(void* user, const void* data, uint64_t bytes), void* user);

}  // namespace quernel::platform
