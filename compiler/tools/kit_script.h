// run.sh of a kit.
#pragma once

#include <string>
#include <vector>

namespace quernel::tools {

// Of a kit for `architecture`; `arguments` are those of quernel-run behind the bundle. For any POSIX shell.
std::string kit_script(const std::string& id, const std::string& architecture,
                       const std::vector<std::string>& arguments);

}  // namespace quernel::tools
