#include "compiled_c.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace quernel::test {

namespace {

// A folder of its own that goes with it, unless QUERNEL_KEEP_C is set.
class Folder {
 public:
  Folder() : path_((std::filesystem::temp_directory_path() / "quernel_c_XXXXXX").string()) {
    if (!mkdtemp(path_.data())) std::abort();
  }
  ~Folder() {
    if (!std::getenv("QUERNEL_KEEP_C")) std::filesystem::remove_all(path_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string c_compiler() {
  const char* named = std::getenv("QUERNEL_TEST_CC");
  return named ? named : QUERNEL_TEST_CC;
}

}  // namespace

std::string missing_c_compiler() {
  bool found = std::system(("command -v " + c_compiler() + " > /dev/null").c_str()) == 0;
  return found ? "" : "no " + c_compiler() + ": toolchains/install_debian.sh --test installs it";
}

CompiledC::CompiledC(const std::string& text, const std::string& flags) {
  Folder folder;
  std::string source = folder.path() + "/model.c";
  std::ofstream(source) << text;
  build({source}, folder.path(), flags);
}

CompiledC CompiledC::of_files(const std::vector<std::string>& files, const std::string& flags) {
  Folder folder;
  CompiledC compiled;
  compiled.build(files, folder.path(), flags);
  return compiled;
}

void CompiledC::build(const std::vector<std::string>& files, const std::string& folder,
                      const std::string& flags) {
  std::string object = folder + "/model.so", log = folder + "/log";
  std::string command =
      c_compiler() + " -std=c99 -pedantic -Wall -Wextra -Werror -ffp-contract=off -shared -fPIC " + flags;
  for (const std::string& file : files) command += " " + file;
  command += " -o " + object + " > " + log + " 2>&1";
  if (std::system(command.c_str()) == 0) {
    library_ = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) ADD_FAILURE() << dlerror();
  } else {
    std::ostringstream said;
    said << std::ifstream(log).rdbuf();
    ADD_FAILURE() << command << "\n" << said.str().substr(0, 8000);
  }
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
