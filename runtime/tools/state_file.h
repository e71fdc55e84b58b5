// The states of a session in a file, as bytes: those of the same bundle, entry point and sizes fit.
#pragma once

#include <string>

#include "quernel/runtime.hpp"
#include "tensor_file.h"

namespace quernel::run {

// Requires `bytes`, the state_bytes of the session's requirements. Returns a message if the file cannot be read, or has
// another number of bytes.
tensor_file::Error load_state(const std::string& path, uint64_t bytes, Session* session);
// Writes a file that is complete or absent.
tensor_file::Error save_state(const std::string& path, uint64_t bytes, Session* session);

}  // namespace quernel::run
