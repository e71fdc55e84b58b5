#include "compiled_c.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace quernel::test {

CompiledC::CompiledC(const std::string& text, const std::string& flags) {
  std::string pattern = (std::filesystem::temp_directory_path() / "quernel_c_XXXXXX").string();
  if (!mkdtemp(pattern.data())) std::abort();
  std::string source = pattern + "/model.c", object = pattern + "/model.so", log = pattern + "/log";
  std::ofstream(source) << text;
  std::string command = std::string(QUERNEL_TEST_CC) +
                        " -std=c99 -pedantic -Wall -Wextra -Werror -ffp-contract=off -shared -fPIC " + flags +
                        " " + source + " -o " + object + " > " + log + " 2>&1";
  if (std::system(command.c_str()) == 0) {
    library_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) ADD_FAILURE() << dlerror();
  } else {
    std::ostringstream said;
    said << std::ifstream(log).rdbuf();
    ADD_FAILURE() << command << "\n" << said.str().substr(0, 8000);
  }
  if (!std::getenv("QUERNEL_KEEP_C")) std::filesystem::remove_all(pattern);
}

CompiledC::~CompiledC() {
  if (library_) dlclose(library_);
}

void* CompiledC::symbol(const std::string& name) const {
  void* found = dlsym(library_, name.c_str());
  EXPECT_NE(found, nullptr) << name;
  return found;
}

}  // namespace quernel::test
