// The results of `quernel test` as JUnit XML, which build servers read.
#pragma once

#include <string>

#include "json.h"

namespace quernel::tools {

// One test case per test vector; of a case that did not come to any, one. `results`: as test.cpp has them.
std::string junit_text(const std::string& on, const Json::Array& results);

}  // namespace quernel::tools
