// C compiled into a shared object and loaded: by the compiler that QUERNEL_TEST_CC names, else by the build's
// own.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace quernel::test {

// Why nothing can be compiled: the compiler is not installed. Empty where it is.
std::string missing_c_compiler();

class CompiledC {
 public:
  // Strict C99, all warnings are errors; what the compiler says then is a test failure, and the object empty.
  CompiledC(const std::string& text, const std::string& flags);
  static CompiledC of_files(const std::vector<std::string>& files, const std::string& flags);
  CompiledC(CompiledC&& other) noexcept : library_(std::exchange(other.library_, nullptr)) {}
  CompiledC(const CompiledC&) = delete;
  ~CompiledC();
  bool ok() const { return library_ != nullptr; }
  template <class Function>
  Function* function(const std::string& name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

  void* symbol(const std::string& name) const;

 private:
  CompiledC() = default;
  void build(const std::vector<std::string>& files, const std::string& folder, const std::string& flags);
  void* library_ = nullptr;
};

}  // namespace quernel::test
