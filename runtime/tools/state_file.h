// The states of a session in a file: a line for each state, an empty line, and their bytes. The lines tell states of
// another model apart.
#pragma once

#include <string>
#include <vector>

#include "quernel/runtime.hpp"
#include "tensor_file.h"

namespace quernel::run {

// `states`: the entry point's, in order. `bytes`: the state_bytes of the session's requirements.
// Returns a message if the file cannot be read, or has other states.
tensor_file::Error load_state(const std::string& path, const std::vector<qnl_tensor>& states, uint64_t bytes,
                              Session* session);
// Writes a file that is complete or absent.
tensor_file::Error save_state(const std::string& path, const std::vector<qnl_tensor>& states, uint64_t bytes,
                              Session* session);

}  // namespace quernel::run
