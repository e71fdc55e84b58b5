#include <dlfcn.h>

#include "platform/library.h"

namespace quernel::platform {

void* open_library(const char* name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }
void* library_function(void* library, const char* name) { return dlsym(library, name); }
void close_library(void* library) { dlclose(library); }

}  // namespace quernel::platform
