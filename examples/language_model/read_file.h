// Whole files.
#pragma once

#include <string>

namespace language_model {

// Throws std::runtime_error, with the path.
std::string read_file(const std::string& path);
// Writes a file that is complete or absent. Throws std::runtime_error, with the path.
void write_file(const std::string& path, const std::string& contents);

}  // namespace language_model
